const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b)

export function median(values: readonly number[]): number {
  const order = sorted(values)
  const middle = order.length >> 1
  if (order.length % 2 === 1) return order[middle] as number
  return ((order[middle - 1] ?? NaN) + (order[middle] ?? NaN)) / 2
}

/**
 * Where the median of all possible samples lies, nineteen times of twenty, whatever their distribution: this many of `n`
 * samples fall on one side of it as throws of a coin do. Null when there are too few to say.
 */
export function rangeOfMedian(values: readonly number[]): [number, number] | null {
  const order = sorted(values)
  let left = 0
  let chance = 0.5 ** order.length
  for (let sum = chance; 2 * sum <= 0.05; sum += chance) {
    left++
    chance *= (order.length - left + 1) / left
  }
  if (left === 0) return null
  return [order[left - 1] as number, order[order.length - left] as number]
}

export function choose(
  values: readonly number[],
  take: 'best' | 'median',
  better: 'higher' | 'lower',
): number {
  if (take === 'median') return median(values)
  return better === 'higher' ? Math.max(...values) : Math.min(...values)
}

/** From the smallest to the largest sample, and how many there are. */
export function describeSpread(values: readonly number[]): string {
  if (values.length === 0) return ''
  if (values.length === 1) return 'once'
  return `${show(Math.min(...values))} to ${show(Math.max(...values))} (${values.length})`
}

/** Three significant digits, and thousands set apart. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return '-'
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US')
  return String(Number(value.toPrecision(3)))
}
