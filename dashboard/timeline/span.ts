/** The part of the time that is shown, in milliseconds. */
export interface Span {
  from: number
  to: number
}

/** Less than this many milliseconds are never shown. */
const LEAST = 0.01

/** Zooms so that the moment under the pointer stays where it is. */
export function zoom({ from, to }: Span, factor: number, around: number, end: number): Span {
  const width = Math.max(LEAST, Math.min((to - from) * factor, end * 1.2))
  const share = (around - from) / Math.max(to - from, LEAST)
  return keep({ from: around - width * share, to: around + width * (1 - share) }, end)
}

export const pan = ({ from, to }: Span, by: number, end: number): Span =>
  keep({ from: from + by, to: to + by }, end)

/** Some of the run stays in sight. */
function keep({ from, to }: Span, end: number): Span {
  const width = to - from
  const least = -width * 0.1
  const most = Math.max(end - width * 0.5, 0)
  const begin = Math.max(least, Math.min(from, most))
  return { from: begin, to: begin + width }
}

export const whole = (end: number): Span => ({ from: 0, to: Math.max(end, 1) * 1.02 })

/** Round moments for an axis: where they are, and the step between them. */
export function ticks({ from, to }: Span, most: number): { at: number[]; step: number } {
  const rough = (to - from) / Math.max(1, most)
  const nice = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
  ]
  const power = 10 ** Math.floor(Math.log10(rough))
  const small = [1, 2, 5, 10].map(one => one * power).find(step => step >= rough) ?? rough
  const step = rough < 1 ? small : (nice.find(one => one >= rough) ?? Math.ceil(rough / 36e5) * 36e5)
  const at: number[] = []
  for (let time = Math.ceil(Math.max(0, from) / step) * step; time <= to; time += step) at.push(time)
  return { at, step }
}
