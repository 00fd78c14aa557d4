import type { SiteFile, SitePlace } from '../../node/files/stream-site.ts'

/** What an agent does with growing files. Orders with an `id` are answered. */
export type StreamOrder =
  /** A board of this name, and a folder. */
  | { readonly op: 'open'; readonly id: number; readonly workflow: string }
  | {
      readonly op: 'know'
      readonly id: number
      readonly steps: readonly string[]
      readonly files: readonly SiteFile[]
    }
  | { readonly op: 'drop'; readonly name: string }

export interface StreamAnswer {
  readonly id: number
  readonly place?: SitePlace
  /** Why it could not be done. */
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string }
}
