/** What the coordinator asks of an agent that has a folder of its own. Paths are those of the agent's machine. */
export type FileOrder =
  /** Writes the stream with this number to the path. */
  | { readonly op: 'put'; readonly number: number; readonly path: string }
  /** Sends the path as the stream with this number; answers whether there is something. */
  | { readonly op: 'get'; readonly number: number; readonly path: string; readonly mayChange: boolean }
  /** Gets what is at a path of another node, as this stream, and writes it to the path. */
  | {
      readonly op: 'pull'
      readonly number: number
      readonly path: string
      readonly node: number
      readonly addresses: readonly string[]
      readonly from: string
    }
  /** Answers how large they are. */
  | { readonly op: 'look'; readonly paths: readonly string[] }
  /** The program of the run, by its content. It is sent as this stream if it is not there. */
  | { readonly op: 'program'; readonly hash: string; readonly number: number }
  /** Removes what is in the way, makes folders, and then copies. Such orders are carried out one after the other. */
  | {
      readonly op: 'make'
      readonly clear: readonly string[]
      readonly folders: readonly string[]
      readonly copies: readonly Copy[]
    }

export interface Copy {
  readonly from: string
  readonly to: string
  /** It is only read: a second name will do. */
  readonly isRead: boolean
}

/** How it went. */
export interface FileAnswer {
  readonly id: number
  readonly error?: string
  /** To `get`, `pull` and `program`: nothing is there. */
  readonly isMissing?: boolean
  /** To `pull`: the other node cannot be reached, or was lost meanwhile. */
  readonly isUnreachable?: boolean
  /** To `look`, in the order of the paths; null where nothing is. */
  readonly sizes?: readonly (number | null)[]
  /** To `put` and `pull`: what the file takes. Bytes. */
  readonly bytes?: number
  /** To these, `get` and `look`: what is free on the disk then. Bytes. */
  readonly free?: number
}
