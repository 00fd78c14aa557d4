/** Numbers with units as people write them. Each parser returns null for what it cannot read. */

const SIZES: Record<string, number> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  pb: 1e15,
  k: 1e3,
  m: 1e6,
  g: 1e9,
  t: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
  pib: 2 ** 50,
}

const DURATIONS: Record<string, number> = {
  '': 1,
  ms: 1,
  s: 1e3,
  sec: 1e3,
  second: 1e3,
  seconds: 1e3,
  m: 60e3,
  min: 60e3,
  minute: 60e3,
  minutes: 60e3,
  h: 3600e3,
  hour: 3600e3,
  hours: 3600e3,
  d: 86400e3,
  day: 86400e3,
  days: 86400e3,
}

const NUMBER = /^\s*([0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?)\s*([a-z]*)\s*$/i

function parse(value: number | string, units: Record<string, number>): number | null {
  if (typeof value === 'number') return Number.isFinite(value) && value >= 0 ? value : null
  const match = NUMBER.exec(value)
  if (!match) return null
  const unit = (match[2] ?? '').toLowerCase()
  if (!Object.hasOwn(units, unit)) return null
  const number = Number(match[1]) * (units[unit] as number)
  return Number.isFinite(number) ? number : null
}

/** Whole bytes from 1024, '290MB' (powers of ten) or '1.5GiB' (powers of two). */
export function parseBytes(value: number | string): number | null {
  const bytes = parse(value, SIZES)
  return bytes === null ? null : Math.round(bytes)
}

/** Bytes per second from 200 (megabytes per second, as people quote devices), '200MB/s' or '1.5GiB/s'. */
export function parseRate(value: number | string): number | null {
  if (typeof value === 'number') return parse(value * 1e6, { '': 1 })
  const [, number = value, perSecond] = /^(.*?)\s*(\/\s*s|ps)?\s*$/i.exec(value) ?? []
  const isBare = /[0-9]\s*$/.test(number)
  // 200 alone is in megabytes; a size without "per second" may be a slip, and 200/s says nothing.
  if (isBare === (perSecond !== undefined)) return null
  return parse(isBare ? `${number}MB` : number, SIZES)
}

/** Milliseconds from 500 or '30s', '5min', '2h'. */
export const parseDuration = (value: number | string): number | null => parse(value, DURATIONS)

/** A whole number of things, from 3 or '3'. */
export function parseCount(value: number | string): number | null {
  const number = parse(value, { '': 1 })
  return number !== null && Number.isInteger(number) ? number : null
}
