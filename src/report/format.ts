const two = (value: number): string => String(value).padStart(2, '0')

/** `0.25ms`, `350ms`, `1.2s`, `12.3s`, `1m05s`, `2h03m`, `3d04h`. Takes milliseconds. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '?'
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (ms < 9.995) return `${Number(ms.toFixed(2))}ms`
  if (ms < 999.5) return `${Math.round(ms)}ms`
  // Rounding comes before the choice of unit, so that 59.96 s is 1m00s and never 60.0s.
  const tenths = Math.round(ms / 100)
  if (tenths < 600) return `${(tenths / 10).toFixed(1)}s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1440) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
  const hours = Math.floor(minutes / 60)
  return `${Math.floor(hours / 24)}d${two(hours % 24)}h`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']

/** `512 B`, `1.5 kB`, `290 MB`: powers of ten, as people write them in options. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return '?'
  if (bytes < 0) return `-${formatBytes(-bytes)}`
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1
  return `${value.toFixed(digits)} ${UNITS[unit]}`
}

/** `1,200`: exact, because totals are never rounded. */
export function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** `1 task`, `1,200 tasks`. */
export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

export function formatPercent(share: number): string {
  return `${Math.round(share * 100)}%`
}
