import type { FileRules } from '../../stream/board/live-board.ts'
import type { Tools } from '../../stream/run/toolchain.ts'

/** A board, as the processes that work on it have to know it. */
export interface BoardName {
  readonly tools: Tools
  readonly workflow: string
}

/** The board of a node on another machine, and where its growing files are. */
export interface SitePlace extends BoardName {
  readonly root: string
}

/** A file that grows, by its name below the folder of each board. */
export interface SiteFile {
  readonly name: string
  /** That writes it. */
  readonly step: string
  readonly rules: FileRules
}

/**
 * Growing files of a node on another machine. It has a board and a folder of its own. All that its programs write comes to the
 * coordinator's; the other way goes what is asked for.
 */
export interface StreamSite {
  /** Makes its board, at the first call. */
  open(here: BoardName): Promise<SitePlace>
  /** Its board knows these steps, and these files. */
  know(steps: readonly string[], files: readonly SiteFile[]): Promise<void>
  /** What is here of the file goes there as it grows. */
  send(name: string): void
  /** Nothing there needs the file any more. */
  drop(name: string): void
  /** Rejects when the node is lost. */
  readonly lost: Promise<never>
}
