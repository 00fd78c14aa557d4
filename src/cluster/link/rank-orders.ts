import type { SiteFacts, SiteOptions } from '../../node/mpi/site.ts'

/** What the coordinator asks of an agent for the ranks of MPI tasks there. Orders for a pool are carried out in their turn. */
export type RankOrder =
  | ({ readonly op: 'open' } & SiteOptions)
  | {
      readonly op: 'run'
      readonly program: number
      readonly words: readonly string[]
      readonly isRank: boolean
    }
  /** A file with a buffer that is sent under this reference. */
  | { readonly op: 'share'; readonly name: string; readonly reference: number }
  | { readonly op: 'make'; readonly name: string; readonly size: number }
  /** Answered by `read`, with the number of a buffer. */
  | {
      readonly op: 'read'
      readonly id: number
      readonly name: string
      readonly from: number
      readonly size: number
    }
  | { readonly op: 'remove'; readonly names: readonly string[] }
  /** These are carried out at once. */
  | { readonly op: 'places' }
  | { readonly op: 'kill'; readonly processes: readonly number[] }
  | { readonly op: 'close' }

export interface RankError {
  readonly code: string | null
  readonly message: string
  readonly hint: string | undefined
}

/** What an agent says of the ranks there. */
export type RankNews =
  | { readonly op: 'opened'; readonly facts: SiteFacts }
  | { readonly op: 'refused'; readonly error: RankError }
  | { readonly op: 'closed'; readonly channel: number }
  | { readonly op: 'printed'; readonly isOutput: boolean; readonly bytes: Uint8Array }
  | {
      readonly op: 'exited'
      readonly program: number
      readonly code: number | null
      readonly reason: string
    }
  | { readonly op: 'read'; readonly id: number; readonly number: number }
  | { readonly op: 'places'; readonly bytes: Uint8Array }
