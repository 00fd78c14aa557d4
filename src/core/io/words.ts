const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Bytes as people write them, exact enough to be told apart. */
export function bytesText(bytes: number): string {
  if (bytes === Infinity) return 'no limit'
  let unit = 0
  let value = bytes
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${Number(value.toPrecision(4))} ${UNITS[unit]}`
}

export const rateText = (bytesPerSecond: number): string =>
  bytesPerSecond === Infinity ? 'unknown bandwidth' : `${bytesText(bytesPerSecond)}/s`
