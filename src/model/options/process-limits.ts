import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { parseBytes, parseCount, parseDuration } from '../../general/units.ts'

/** What a command may use; the system ends it, or refuses, when it wants more. */
export interface ProcessLimits {
  /** CPU time of its process: milliseconds, or '10min'. */
  cpuTime?: number | string
  /** Address space of each of its processes: bytes, or '2GB'. */
  memory?: number | string
  /** The largest file that it may write. */
  fileSize?: number | string
  /** Files that it may have open at once. */
  openFiles?: number
}

/** In bytes, whole seconds and counts, as the system wants them. */
export type ParsedLimits = Partial<Record<keyof ProcessLimits, number>>

const PARSE: Record<keyof ProcessLimits, (value: number | string) => number | null> = {
  cpuTime: value => {
    const milliseconds = parseDuration(value)
    return milliseconds === null ? null : Math.ceil(milliseconds / 1000)
  },
  memory: parseBytes,
  fileSize: parseBytes,
  openFiles: parseCount,
}

export function parseLimits(what: string, limits: ProcessLimits | undefined): ParsedLimits | null {
  if (limits === undefined) return null
  const parsed: ParsedLimits = {}
  for (const [name, value] of Object.entries(limits) as [
    keyof ProcessLimits,
    number | string | undefined,
  ][]) {
    if (value === undefined) continue
    if (!(name in PARSE)) {
      const close = nearest(name, Object.keys(PARSE))
      throw new MillraceError(
        'MR_OPTION',
        `${what}: limits has no '${name}'${close ? `; did you mean '${close}'?` : ''}`,
        { hint: `There are ${Object.keys(PARSE).join(', ')}.` },
      )
    }
    const number = PARSE[name](value)
    if (number === null || number < 1) {
      throw new MillraceError(
        'MR_UNIT',
        `${what}: limits.${name} is '${String(value)}', which cannot be read`,
      )
    }
    parsed[name] = number
  }
  return parsed
}
