import type { MillraceError } from '../../core/errors.ts'
import type { MpiKind } from './launcher.ts'

/** What a site says when it is open. */
export interface SiteFacts {
  readonly kind: MpiKind
  /** The words that start a launcher there. */
  readonly launcher: readonly string[]
  /** For what ranks map; on that machine. */
  readonly folder: string
  /** The words that start a rank there. */
  readonly rank: readonly string[]
  /** Two sites of one machine have the same. */
  readonly machine: string
  /** A program that asks for a process on another site: its first argument is the name of the host, the rest a line for a shell. */
  readonly starter: string
}

export interface SiteEvents {
  /** From a process that has connected. */
  data(channel: number, chunk: Buffer): void
  closed(channel: number): void
  /** What a program wrote. */
  printed(isOutput: boolean, chunk: Uint8Array): void
  /** All that the program has written was told of before. */
  exited(program: number, code: number | null, reason: string): void
  /** The machine is gone with all that was there. */
  lost(reason: string, error: MillraceError): void
}

/** What the processes on a site need. */
export interface SiteOptions {
  /** All ranks, also those on other sites. */
  readonly size: number
  /** The nodes of all ranks. */
  readonly nodes: readonly string[]
}

/**
 * A machine on which ranks are: their processes, the memory that they map, and their connections. Orders are carried out in
 * their turn, so memory that was shared is there before the next message to a rank.
 */
export interface RankSite {
  /** The name of its node. */
  readonly node: string
  open(options: SiteOptions, events: SiteEvents): Promise<SiteFacts>
  /** Starts a program; with `isRank` it and what it starts are ranks of this site. */
  run(program: number, words: readonly string[], isRank: boolean): void
  write(channel: number, bytes: Uint8Array): void
  /** A file in the folder with these bytes. `changes`: the buffer may be another one the next time. */
  share(name: string, bytes: Uint8Array, changes: boolean): void
  /** An empty file. */
  make(name: string, size: number): void
  /** Fills `into` from the file: at once, on this machine. */
  read(name: string, from: number, into: Uint8Array): Promise<void> | null
  remove(names: readonly string[]): void
  /** Where all ranks are; those of other sites are nowhere. Null until there is something new. */
  places(): Buffer | null
  /** Ends what was started here, and these processes. */
  kill(processes: readonly number[]): void
  /** The program keeps this process alive, until it has ended. */
  hold(): void
  close(): void
}
