import type { FileSpec, Marked, MaybeFile } from './marks.ts'
import type { FileShape } from './shape.ts'
import type { Argv, ShellCommand } from '../shell/sh.ts'
import type { BandwidthValue } from '../../model/options/bandwidth.ts'

/** What the function of a rule gets for the files of its rule: paths in the same form. */
export type PathsOf<S> = S extends FileSpec
  ? string
  : S extends object
    ? { -readonly [K in keyof S]: PathsOf<S[K]> }
    : never

export type InputsOf<S> = S extends (...args: never[]) => infer R
  ? InputsOf<R>
  : S extends MaybeFile
    ? string | undefined
    : S extends FileSpec
      ? string
      : S extends object
        ? { -readonly [K in keyof S]: InputsOf<S[K]> }
        : never

/** The names of the wildcards in a pattern. */
type NamesIn<S extends string> = S extends `${string}{${infer Hole}}${infer Rest}`
  ? (Hole extends `${infer Name}:${string}` ? Name : Hole) | NamesIn<Rest>
  : never

type TextOf<S> = S extends string ? S : S extends Marked<infer P> ? P : never

type TextsOf<S> = S extends readonly (infer Inner)[] ? TextOf<Inner> : TextOf<S>

type Texts<S> = S extends string
  ? S
  : S extends Marked<infer P>
    ? P
    : S extends readonly (infer Item)[]
      ? TextsOf<Item>
      : S extends { readonly [name: string]: infer Item }
        ? TextsOf<Item>
        : never

/** Of a path that is not a literal the names are not known to the compiler, and any may be asked for. */
export type WildcardsOf<S> = [NamesIn<Texts<S>>] extends [never]
  ? { readonly [name: string]: string }
  : { readonly [Name in NamesIn<Texts<S>>]: string }

export type InputSpec<W> = FileShape | ((wildcards: W) => FileShape)

export type Parameters = { readonly [name: string]: string }

/** What the function of a rule is called with. */
export interface RuleContext<O = unknown, I = unknown, W = { readonly [name: string]: string }> {
  /** Where to write: beside the final place, and moved there when the task has ended well. */
  readonly out: O
  readonly in: I
  readonly wildcards: W
  /** Parameters from the command line. */
  readonly params: Parameters
  /** Ends when the task is to stop; for functions that do the work themselves. */
  readonly signal: AbortSignal
}

/** A command, which is then run; or the work itself, by an asynchronous function. */
export type Action<O, I, W> = (
  context: RuleContext<O, I, W>,
) => ShellCommand | Argv | void | PromiseLike<unknown>

/** A value, or a function of the wildcards. */
type PerTask<T, W> = T | ((wildcards: W) => T)

/** Without `reads`, it reads its inputs as large as they are; what it writes is divided among its outputs. */
export interface RuleCost<W = { readonly [name: string]: string }> {
  /** Seconds of computing, or '3min'. @default 0 */
  compute?: PerTask<number | string, W>
  /** Bytes that it reads, or '290MB'. */
  reads?: PerTask<number | string, W>
  /** Bytes that it writes. @default 0 */
  writes?: PerTask<number | string, W>
}

export interface RuleOptions<W = { readonly [name: string]: string }> {
  /** How the rule is called in progress, traces and errors. @default its first output */
  name?: string
  /** CPUs that a task holds while it runs. @default 1 */
  cpus?: PerTask<number | string, W>
  /** Memory that a task claims: bytes or '512MB'. */
  memory?: PerTask<number | string, W>
  /** What the node must have. */
  tags?: PerTask<string | readonly string[], W>
  /** An I/O task: holds no CPU. */
  io?: boolean
  /** Bandwidth that a task claims on its device: MB/s, '200MB/s', 'auto', auto(min, max, delta) or 'adaptive'. */
  bandwidth?: PerTask<BandwidthValue, W>
  /** Bytes that a task writes, or '290MB': room is reserved for them. @default what such tasks wrote before */
  size?: PerTask<number | string, W>
  /** The name of the only device that its files may be written to. @default the fastest with room */
  storage?: string
  /** All its outputs are temporary, as if each were marked `temp`. @default false */
  temporary?: boolean
  /** Higher runs first among ready tasks. @default 0 */
  priority?: PerTask<number, W>
  /** Further attempts after a failure. @default 0 */
  retries?: number
  /** Milliseconds, or '30s', after which an attempt is stopped and counts as failed. */
  timeout?: number | string
  /** Where a copy of what the task prints is kept; may have the wildcards of the outputs. */
  log?: string
  /** Variables added to the environment. They are part of the command. */
  env?: PerTask<Readonly<Record<string, string>>, W>
  /** Working directory of the command, relative to the workflow's. Paths are then absolute. */
  cwd?: PerTask<string, W>
  /** Exit codes that count as success. @default [0] */
  exitCodes?: readonly number[]
  /** What a task costs, for `millrace simulate`, which does not run it. */
  cost?: RuleCost<W>
  /** Values that the work depends on besides its inputs: when they change, it is done again. */
  uses?: string | number | boolean | null | object | ((wildcards: W) => unknown)
}

export interface TargetContext {
  /** Brings files, or other targets, up to date. Gives the files back, for convenience. */
  need(files: string | readonly string[]): Promise<string[]>
  readonly params: Parameters
}

export type TargetBody = (context: TargetContext) => unknown
