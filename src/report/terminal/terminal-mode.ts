import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'

export const MODES = ['live', 'plain', 'json', 'none'] as const
export type Mode = (typeof MODES)[number]

export interface ModeFacts {
  /** The value of `--progress`, if it was given. */
  asked?: string | undefined
  /** The value of `--color`, if it was given. */
  askedColor?: boolean | undefined
  /** Whether the stream that is written to is a terminal. */
  isTTY: boolean
  env: Readonly<Record<string, string | undefined>>
}

export interface Look {
  mode: Mode
  color: boolean
  unicode: boolean
}

/** What was asked for wins; then live on a terminal that a person looks at, plain everywhere else. */
export function chooseMode({ asked, askedColor, isTTY, env }: ModeFacts): Look {
  const isDumb = env['TERM'] === 'dumb'
  const isWatched = isTTY && !isDumb && !isOn(env['CI'])
  const mode = asked === undefined ? (isWatched ? 'live' : 'plain') : parseMode(asked)
  const color = mode !== 'json' && (askedColor ?? wantsColor(env, isTTY && !isDumb))
  return { mode, color, unicode: !isDumb && isUtf8(env) }
}

function parseMode(asked: string): Mode {
  const mode = MODES.find(known => known === asked)
  if (mode) return mode
  const near = nearest(asked, MODES)
  const meant = near ? `Did you mean ${near}? ` : ''
  throw new MillraceError('MR_OPTION', `--progress cannot be \`${asked}\``, {
    hint: `${meant}It is one of ${MODES.join(', ')}.`,
  })
}

/** FORCE_COLOR is before NO_COLOR, as it is in Node itself. */
function wantsColor(env: ModeFacts['env'], fallback: boolean): boolean {
  const force = env['FORCE_COLOR']
  if (force !== undefined) return force === '' || isOn(force)
  if (env['NO_COLOR']) return false
  if (isOn(env['CLICOLOR_FORCE'])) return true
  return fallback
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && value !== '' && value !== '0' && value !== 'false'
}

function isUtf8(env: ModeFacts['env']): boolean {
  return /utf-?8/i.test(env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '')
}
