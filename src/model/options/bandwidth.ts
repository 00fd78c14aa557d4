import { MillraceError } from '../../core/errors.ts'
import type { Bandwidth, BoundedAuto } from '../../core/tasks/demand.ts'
import { nearest } from '../../general/nearest.ts'
import { parseRate } from '../../general/units.ts'
import { fromEnvironment } from './environment.ts'
import type { Known } from '../types.ts'

/** What `auto` returns: a bandwidth that is learned between two bounds. */
export type AutoBandwidth = BoundedAuto

/** MB/s, '200MB/s', '$ENV', 'auto', auto(min, max, delta) or 'adaptive'. */
export type BandwidthValue = number | string | AutoBandwidth

export type BandwidthOption<A extends readonly unknown[]> =
  BandwidthValue | ((...args: Known<A>) => BandwidthValue)

/**
 * A bandwidth that is learned between bounds: the first trial gives each task `min`, the next `delta` times as
 * much, up to `max`. Numbers are MB/s.
 *
 *     task({ io: true, params: [IN, FILE_OUT], bandwidth: auto(2, 64, 2) }, save)
 */
export function auto(min: number | string, max: number | string, delta = 2): AutoBandwidth {
  const [least, most] = [min, max].map(bound => rate('auto', bound)) as [number, number]
  if (least === 0 || most < least) {
    throw new MillraceError('MR_OPTION', `auto(${min}, ${max}): the bounds do not go up from above 0`, {
      hint: 'Write the smallest and the largest bandwidth per task, such as auto(2, 64, 2).',
    })
  }
  if (!(delta > 1)) {
    throw new MillraceError(
      'MR_OPTION',
      `auto(${min}, ${max}, ${String(delta)}): the factor is not above 1`,
      {
        hint: 'The factor is what a trial differs from the one before by, such as 2.',
      },
    )
  }
  return { min: least, max: most, delta }
}

/** What the option means for a call; without arguments, functions of them are left out. */
export function evaluateBandwidth(
  what: string,
  option: BandwidthOption<readonly unknown[]> | undefined,
  args: readonly unknown[] | null,
): Bandwidth {
  if (option === undefined) return null
  let value = option
  if (typeof value === 'function') {
    if (!args) return null
    value = value(...args)
  }
  if (typeof value === 'object' && value !== null && 'delta' in value) return value
  if (typeof value === 'string' && value.startsWith('$')) {
    value = fromEnvironment(what, 'bandwidth', value.slice(1))
  }
  if (value === 'auto' || value === 'adaptive') return value
  if (typeof value === 'string' && value.startsWith('auto(')) return boundedBy(what, value)
  const bytes = rate(what, value)
  if (bytes > 0) return bytes
  throw new MillraceError('MR_UNIT', `${what}: bandwidth is 0, so that it could never run`)
}

/** `auto(10, 50, 4)` as text, with units where wanted: `auto(10MB/s, 50MB/s)`. */
function boundedBy(what: string, text: string): AutoBandwidth {
  const inside = /^auto\(([^()]*)\)$/.exec(text.trim())?.[1]
  const [min = '', max = '', delta = '2', ...more] = (inside ?? '').split(',').map(part => part.trim())
  if (inside === undefined || max === '' || more.length > 0 || Number.isNaN(Number(delta))) {
    throw new MillraceError(
      'MR_UNIT',
      `${what}: bandwidth is '${text}', which is not auto(min, max, delta)`,
      {
        hint: "Write 'auto(2, 64, 2)': the smallest and the largest MB/s of a task, and the factor between trials.",
      },
    )
  }
  return auto(asNumber(min), asNumber(max), Number(delta))
}

/** A plain number is in MB/s. */
const asNumber = (text: string): number | string =>
  text !== '' && !Number.isNaN(Number(text)) ? Number(text) : text

function rate(what: string, value: number | string): number {
  const bytes = typeof value === 'number' || typeof value === 'string' ? parseRate(value) : null
  if (bytes !== null) return bytes
  const close = typeof value === 'string' ? nearest(value, ['auto', 'adaptive']) : null
  throw new MillraceError(
    'MR_UNIT',
    `${what}: bandwidth is '${String(value)}', which is not a rate${close ? `; did you mean '${close}'?` : ''}`,
    { hint: "Write MB/s as a number, '200MB/s', 'auto', auto(min, max, delta) or 'adaptive'." },
  )
}
