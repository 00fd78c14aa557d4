import type { TunerRow } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatDuration, plural } from '../../src/report/format.ts'
import { Card } from '../parts.tsx'
import { Table, type Column } from '../table.tsx'

/** Trials with the same number of tasks at one time, together. */
interface Trials {
  concurrency: number
  count: number
  mean: number
  /** Tasks per second, all together. */
  rate: number
}

const rateOf = (concurrency: number, mean: number): number => (mean > 0 ? (concurrency * 1000) / mean : 0)

function trialsOf({ trials }: TunerRow): Trials[] {
  const found = new Map<number, { count: number; sum: number }>()
  for (const { concurrency, mean } of trials) {
    const known = found.get(concurrency) ?? { count: 0, sum: 0 }
    found.set(concurrency, { count: known.count + 1, sum: known.sum + mean })
  }
  return [...found]
    .sort(([a], [b]) => a - b)
    .map(([concurrency, { count, sum }]) => {
      const mean = sum / count
      return { concurrency, count, mean, rate: rateOf(concurrency, mean) }
    })
}

const rateText = (value: number): string =>
  value >= 100 ? formatCount(Math.round(value)) : value.toPrecision(2)

/** What was tried: how many tasks at one time, how long each took, how many the device did per second. And what was taken. */
export function Tuner({ tuner, isOver }: { tuner: TunerRow; isOver: boolean }): preact.JSX.Element {
  const { kind, device, trials, verdict } = tuner
  const rows = trialsOf(tuner)
  const most = Math.max(...rows.map(row => row.rate), 1e-9)
  const taken = rows.find(row => row.concurrency === verdict?.concurrency)
  const isTaken = (row: Trials): boolean => row.concurrency === verdict?.concurrency
  const columns: Column<Trials>[] = [
    {
      title: 'tasks at one time',
      class: 'thin',
      cell: row => (
        <span class={isTaken(row) ? 'taken' : ''}>
          {formatCount(row.concurrency)}
          {isTaken(row) ? ' ◆ taken' : ''}
        </span>
      ),
    },
    { title: 'tasks per second', isNumber: true, cell: row => rateText(row.rate) },
    { title: 'time of a task', isNumber: true, cell: row => formatDuration(row.mean) },
    { title: 'trials', isNumber: true, cell: row => formatCount(row.count) },
  ]
  const told = verdict
    ? `${verdict.concurrency} at a time, ${formatBytes(verdict.bandwidth)}/s each`
    : `${plural(trials.length, 'trial')}${isOver ? '' : ' so far'}`
  return (
    <Card title={`Limit of ${kind} on ${device}`} aside={told} class="tuner">
      {rows.length === 0 ? null : (
        <div class="trials">
          <TrialPlot tuner={tuner} rows={rows} />
          <Table
            name={`Trials of ${kind} on ${device}`}
            columns={columns}
            rows={rows}
            keyOf={row => row.concurrency}
          />
        </div>
      )}
      <p class="hint">
        {verdict
          ? `◆ ${verdict.reason}${verdict.learned > 0 ? `; learned from ${plural(verdict.learned, 'task')}` : ''}.`
          : isOver
            ? 'No verdict: the run ended before there were enough trials.'
            : 'No verdict yet.'}
        {verdict && verdict.waiting !== null && taken && taken.rate < most
          ? ` Another number does more tasks per second, but ${plural(verdict.waiting, 'task')} waited, and the last of so few ends sooner this way. It is chosen again when more wait.`
          : ''}
      </p>
    </Card>
  )
}

/** In units of the drawing, which is stretched to its place. */
const WIDTH = 600
const HEIGHT = 100
/** Numbers below the plot that are nearer to each other than this share of its width would overlap. */
const LABEL_SHARE = 0.06

/** A dot for each trial, a line through the means, and the number that was taken. */
function TrialPlot({
  tuner: { kind, device, trials, verdict },
  rows,
}: {
  tuner: TunerRow
  rows: readonly Trials[]
}): preact.JSX.Element {
  const taken = verdict?.concurrency ?? null
  const numbers = [...new Set([...rows.map(row => row.concurrency), ...(taken === null ? [] : [taken])])]
  const least = Math.min(...numbers)
  const range = Math.log(Math.max(...numbers) / least)
  const most = Math.max(...trials.map(({ concurrency, mean }) => rateOf(concurrency, mean)), 1e-9)
  // Numbers are tried by doubling, so the axis is logarithmic.
  const share = (concurrency: number): number =>
    range > 0 ? 0.03 + (Math.log(concurrency / least) / range) * 0.94 : 0.5
  const x = (concurrency: number): string => (share(concurrency) * WIDTH).toFixed(1)
  const y = (rate: number): string => (HEIGHT - (rate / most) * (HEIGHT - 14)).toFixed(1)
  const best = rows.find(row => row.concurrency === taken)
  const told = rows.map(
    row =>
      `${row.concurrency} at one time, ${rateText(row.rate)}${row.concurrency === taken ? ', taken' : ''}`,
  )
  let last = -1
  const labels = numbers
    .sort((a, b) => Number(b === taken) - Number(a === taken) || a - b)
    .filter(
      number => number === taken || taken === null || Math.abs(share(number) - share(taken)) >= LABEL_SHARE,
    )
    .sort((a, b) => a - b)
    .filter(number => {
      const isFree = number === taken || last < 0 || share(number) - last >= LABEL_SHARE
      if (isFree) last = share(number)
      return isFree
    })
  return (
    <figure class="chart">
      <div class="title" aria-hidden="true">
        tasks per second, by tasks at one time
      </div>
      <div class="plot">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Tasks per second of ${kind} on ${device}: ${told.join('; ')}`}
        >
          {[0.25, 0.5, 0.75, 1].map(height => (
            <line key={height} class="grid" x1={0} x2={WIDTH} y1={HEIGHT * height} y2={HEIGHT * height} />
          ))}
          {taken === null ? null : <line class="verdict" x1={x(taken)} x2={x(taken)} y1={0} y2={HEIGHT} />}
          <polyline
            class="curve"
            points={rows.map(row => `${x(row.concurrency)},${y(row.rate)}`).join(' ')}
          />
          {trials.map(({ concurrency, mean }, i) => (
            // A line of no length has round ends: a dot that stays round in a drawing that is stretched.
            <path key={i} class="trial" d={`M${x(concurrency)} ${y(rateOf(concurrency, mean))}h0`} />
          ))}
        </svg>
        {best ? (
          <span
            class="diamond"
            aria-hidden="true"
            style={{
              left: `${share(best.concurrency) * 100}%`,
              top: `calc((100% - var(--below)) * ${Number(y(best.rate)) / HEIGHT})`,
            }}
          >
            ◆
          </span>
        ) : null}
        <span class="most" aria-hidden="true">
          {rateText(most)}/s
        </span>
        {labels.map(number => (
          <span
            key={number}
            class={`tick${number === taken ? ' taken' : ''}`}
            aria-hidden="true"
            style={{ left: `${share(number) * 100}%` }}
          >
            {number}
          </span>
        ))}
      </div>
      <figcaption>
        <span class="legend">
          <span>
            <i class="dot" /> a trial
          </span>
          <span>
            <i class="line" /> mean
          </span>
          {taken === null ? null : (
            <span>
              <i class="line two" /> ◆ taken <b>{taken}</b>
            </span>
          )}
        </span>
      </figcaption>
    </figure>
  )
}
