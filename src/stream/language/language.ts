import type { Place } from '../../source/json.ts'
import type { Pattern } from './pattern.ts'

/** When a file or directory is complete. */
export type Commit =
  /** All producers (or `count` of them) have ended. */
  | { on: 'termination'; count: number | undefined }
  /** Producers have closed it this many times; without a count: once, by its writer. */
  | { on: 'close'; count: number | undefined }
  /** With all of these. */
  | { on: 'file'; deps: Name[] }
  /** A directory: with this many files in it. */
  | { on: 'n_files'; count: number }

/** When a consumer may read: once committed (`update`), or as it grows (`no_update`). */
export type Fire = 'update' | 'no_update'

/** A string of the configuration with its place, before aliases and braces are replaced. */
export interface Written {
  text: string
  at: Place
  field: string
}

/** One name or pattern of the configuration, ready to be matched. */
export interface Name {
  pattern: Pattern
  at: Place
  field: string
  /** Written with a `/`: then it is a file, whatever groups are called. */
  path: boolean
  /** Written with a `/` at the end: then it is a directory. */
  slash: boolean
  /** The group it came from, when it was written as one. */
  alias?: string
}

export interface Rule {
  name: Name
  /** The rule is about a directory (`dirname`). */
  directory: boolean
  commit: Commit
  fire: Fire
  /** For a directory with its number of files: what holds for the files in it, if not `commit`. */
  filesCommit: Commit | undefined
  step: string
  at: Place
  field: string
}

export interface Step {
  name: string
  at: Place
  field: string
  inputs: Name[]
  outputs: Name[]
}

export interface ManualHome {
  files: Name[]
  step: string
  /** Logical number of the process in its step (`step:N`), 0 when not given. */
  process: number
}

/** A configuration as its writer meant it: aliases and braces replaced, every name with its place. */
export interface Config {
  file: string
  name: string
  version: string
  steps: Step[]
  rules: Rule[]
  permanent: Name[]
  exclude: Name[]
  memory: Name[]
  fs: Name[]
  hashing: Name[]
  create: Name[]
  manual: ManualHome[]
}

export const COMMIT_WORDS = ['on_termination', 'on_close', 'on_file', 'on_n_files'] as const
export const FIRE_WORDS = ['update', 'no_update'] as const

/** In the words of the language. */
export function commitText(commit: Commit): string {
  switch (commit.on) {
    case 'termination':
      return commit.count === undefined ? 'on_termination' : `on_termination:${commit.count}`
    case 'close':
      return commit.count === undefined ? 'on_close' : `on_close:${commit.count}`
    case 'file':
      return `on_file ${commit.deps.map(dep => dep.pattern.text).join(', ')}`
    case 'n_files':
      return `on_n_files ${commit.count}`
  }
}
