import { MillraceError } from '../core/errors.ts'
import { nearest } from '../general/nearest.ts'

/** When a file that a command writes is complete, and when others may start on it. */
export interface StreamOptions {
  /**
   * `'on_termination'`: when the command has ended well. `'on_close'`: when it has closed the file, `'on_close:3'`:
   * for the third time. `'on_file:PATH'`: with another of its streams. Directories: `'on_n_files:12'`, when that many
   * files in it are; with `'on_close'` each file in it when it is closed. @default 'on_termination'
   */
  commit?: string
  /**
   * `'update'`: others start when the file is complete. `'no_update'`: commands that read it start together with
   * its producer and read it as it grows; it must be written from start to end. @default 'update'
   */
  fire?: 'update' | 'no_update'
}

export interface StreamRules {
  /** Closes that complete it; 0 for the end of its producer. */
  readonly closes: number
  readonly grows: boolean
  /** A directory: the files that complete it. */
  readonly files?: number
  /** Another output of the same command, which completes this one. */
  readonly beside?: string
}

/** It can be complete before its producer has ended. The files of a directory can, and then it is not. */
export const isEarly = (rules: StreamRules, isDirectory: boolean): boolean =>
  rules.files !== undefined || rules.beside !== undefined || (rules.closes > 0 && !isDirectory)

/** What `stream` returns: a path with rules, for an output of a command: a file or a directory. */
export class StreamFile {
  readonly path: string
  readonly rules: StreamRules

  constructor(path: string, rules: StreamRules) {
    this.path = path
    this.rules = rules
  }
}

/**
 * Makes an output of a command a stream.
 *
 *     make(stream('numbers.txt', { commit: 'on_close', fire: 'no_update' }))
 *     use('numbers.txt')                          // runs at the same time, and reads as the file grows
 */
export function stream(path: string, options: StreamOptions = {}): StreamFile {
  if (typeof path !== 'string' || path === '') {
    throw new MillraceError('MR_OPTION', 'stream: the first argument is not a path', {
      hint: 'Give the path of a file.',
    })
  }
  return new StreamFile(path, streamRules(options))
}

export function streamRules(options: StreamOptions): StreamRules {
  const refuse = (message: string, hint: string): never => {
    throw new MillraceError('MR_OPTION', `stream: ${message}`, { hint })
  }
  for (const name of Object.keys(options)) {
    if (name === 'commit' || name === 'fire') continue
    const close = nearest(name, ['commit', 'fire'])
    refuse(`there is no option ${name}`, close ? `Did you mean ${close}?` : 'There are commit and fire.')
  }
  const { commit = 'on_termination', fire = 'update' } = options
  const [, closes] = /^on_close(:[1-9]\d{0,8})?$/.exec(commit) ? [commit, commit.slice(9) || '1'] : []
  const [, files] = /^on_n_files:([1-9]\d{0,8})$/.exec(commit) ?? []
  const [, beside] = /^on_file:(.+)$/s.exec(commit) ?? []
  if (commit !== 'on_termination' && (closes ?? files ?? beside) === undefined) {
    const ways = "'on_close', 'on_close:N', 'on_file:PATH' or, for directories, 'on_n_files:N', with N from 1"
    refuse(`commit is '${commit}'`, `Write 'on_termination', ${ways}.`)
  }
  if (fire !== 'update' && fire !== 'no_update')
    refuse(`fire is '${String(fire)}'`, "Write 'update' or 'no_update'.")
  return {
    closes: Number(closes ?? 0),
    grows: fire === 'no_update',
    ...(files === undefined ? {} : { files: Number(files) }),
    ...(beside === undefined ? {} : { beside }),
  }
}
