import type { Points } from '../src/report/dashboard/protocol.ts'
import { bucketStart } from '../src/report/dashboard/state/kinds.ts'
import { formatCount, formatDuration } from '../src/report/format.ts'

export interface Line {
  name: string
  points: Points
  /** A class of the style sheet. */
  tone: 'one' | 'two' | 'three' | 'faint'
  isArea?: boolean
}

export interface Level {
  name: string
  value: number
}

/** Styles of the levels, in their order. */
const LEVELS = ['level', 'level second']
const WIDTH = 600
const HEIGHT = 100

/** Values over time, with levels that they are to be compared with. */
export function Chart({
  title,
  lines,
  levels = [],
  format,
  until,
  isOver = false,
  atLeast = 0,
}: {
  title: string
  lines: readonly Line[]
  levels?: readonly Level[]
  format: (value: number) => string
  until: number
  /** The run has ended: the last value says nothing, the mean does. */
  isOver?: boolean
  /** The scale reaches at least this far. */
  atLeast?: number
}): preact.JSX.Element {
  const values = lines.flatMap(line => line.points.values)
  const most = Math.max(atLeast, ...levels.map(level => level.value), ...values, 1e-9)
  const y = (height: number): number => HEIGHT - (height / most) * (HEIGHT - 14)
  const value = ({ points }: Line): string =>
    isOver ? `${format(meanOf(points))} on average` : format(points.values.at(-1) ?? 0)
  const latest = lines.map(line => `${line.name} ${value(line)}`)
  const limits = levels.map(({ name, value: height }) => `${name} ${format(height)}`)
  return (
    <figure class="chart">
      <div class="title" aria-hidden="true">
        {title}
      </div>
      <div class="plot">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}: ${[...latest, ...limits].join(', ')}`}
        >
          {[0.25, 0.5, 0.75].map(share => (
            <line key={share} class="grid" x1={0} x2={WIDTH} y1={HEIGHT * share} y2={HEIGHT * share} />
          ))}
          {lines.map(line => (
            <Curve key={line.name} line={line} until={until} y={y} />
          ))}
          {levels.map(({ name, value: height }, i) => (
            <line key={name} class={LEVELS[i] ?? 'level'} x1={0} x2={WIDTH} y1={y(height)} y2={y(height)} />
          ))}
        </svg>
        <span class="most">{format(most)}</span>
        <span class="from">0</span>
        <span class="until">{formatDuration(until)}</span>
      </div>
      <figcaption>
        <span class="legend">
          {lines.map(line => (
            <span key={line.name}>
              <i class={`line ${line.tone}`} /> {line.name} <b>{value(line)}</b>
            </span>
          ))}
          {levels.map(({ name, value: height }, i) => (
            <span key={name}>
              <i class={`line ${LEVELS[i] ?? 'level'}`} /> {name} <b>{format(height)}</b>
            </span>
          ))}
        </span>
      </figcaption>
    </figure>
  )
}

const meanOf = ({ values }: Points): number =>
  values.length === 0 ? 0 : values.reduce((sum, one) => sum + one, 0) / values.length

function Curve({
  line: { points, tone, isArea = false },
  until,
  y,
}: {
  line: Line
  until: number
  y: (value: number) => number
}): preact.JSX.Element {
  const scale = WIDTH / Math.max(until, 1)
  const steps = points.values.map((value, i) => {
    const from = Math.min(WIDTH, i * points.width * scale)
    const to = Math.min(WIDTH, (i + 1) * points.width * scale)
    return `L${from.toFixed(1)} ${y(value).toFixed(1)}L${to.toFixed(1)} ${y(value).toFixed(1)}`
  })
  const path = `M0 ${y(points.values[0] ?? 0).toFixed(1)}${steps.join('')}`
  const end = Math.min(WIDTH, points.values.length * points.width * scale).toFixed(1)
  return (
    <g>
      {isArea ? <path class={`area ${tone}`} d={`${path}L${end} ${HEIGHT}L0 ${HEIGHT}Z`} /> : null}
      <path class={`curve ${tone}`} d={path} />
    </g>
  )
}

/** How long tasks took: one bar per bucket, from short to long. */
export function Histogram({
  name,
  histogram: { from, counts },
}: {
  name: string
  histogram: { from: number; counts: number[] }
}): preact.JSX.Element | null {
  if (counts.length === 0) return null
  const most = Math.max(...counts)
  const width = 100 / Math.max(counts.length, 8)
  const range = `${formatDuration(bucketStart(from))} to ${formatDuration(bucketStart(from + counts.length))}`
  return (
    <svg
      class="histogram"
      viewBox="0 0 100 24"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${name}: ${range}`}
    >
      <title>{range}</title>
      {counts.map((count, i) => {
        const height = count === 0 ? 0 : Math.max(1.5, (count / most) * 23)
        return (
          <rect key={i} x={i * width} y={24 - height} width={width * 0.86} height={height}>
            <title>{`${formatDuration(bucketStart(from + i))}: ${formatCount(count)}`}</title>
          </rect>
        )
      })}
    </svg>
  )
}

/** A share of something, as a bar with words. */
export function Meter({
  label,
  share,
  text,
  tone = '',
}: {
  label: string
  share: number
  text: string
  tone?: string
}): preact.JSX.Element {
  return (
    <div class="meter">
      <span class="label">{label}</span>
      <span
        class="bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(Math.min(1, share) * 100)}
        aria-valuetext={text}
      >
        <span class={tone} style={{ width: `${Math.min(1, share) * 100}%` }} />
      </span>
      <span class="text">{text}</span>
    </div>
  )
}
