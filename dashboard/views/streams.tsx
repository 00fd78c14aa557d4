import type { RunSection, StreamRow } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatDuration, plural } from '../../src/report/format.ts'
import { Chart } from '../charts.tsx'
import { Card, Empty, Loading } from '../parts.tsx'
import { useSection } from '../store.ts'

export function StreamsView(): preact.JSX.Element {
  const section = useSection('streams')
  const run = useSection('run')
  if (!section || !run) return <Loading />
  if (section.streams.length === 0)
    return (
      <Empty>
        Nothing is passed on while it grows. Shown here are outputs of commands that were given with{' '}
        <code>stream(path)</code>, files of <code>millrace stream run</code>, and values of generators.
      </Empty>
    )
  return (
    <div class="streams">
      {section.waits.length === 0 ? null : (
        <Card title="Who waits for whom">
          <ul>
            {section.waits.map((text, i) => (
              <li key={i}>{text}</li>
            ))}
          </ul>
        </Card>
      )}
      <div class="grid-cards">
        {section.streams.map(stream => (
          <Stream key={stream.name} stream={stream} run={run} />
        ))}
      </div>
      {section.leftOut > 0 ? <p>and {formatCount(section.leftOut)} more</p> : null}
    </div>
  )
}

const SHAPES: Record<string, string> = {
  growing: '▶',
  committed: '✓',
  failed: '✕',
  absent: '○',
  'cut off': '⊘',
}

function Stream({ stream, run }: { stream: StreamRow; run: RunSection }): preact.JSX.Element {
  const until = run.elapsed
  const amount = (value: number): string =>
    stream.unit === 'bytes' ? formatBytes(value) : plural(Math.round(value), 'value')
  const rate = (value: number): string =>
    stream.unit === 'bytes' ? `${formatBytes(value * 1000)}/s` : `${Math.round(value * 10_000) / 10}/s`
  return (
    <Card
      title={stream.name}
      aside={
        <span
          class={`badge ${stream.state === 'growing' ? 'live' : stream.state === 'committed' ? 'good' : stream.state === 'failed' ? 'bad' : stream.state === 'cut off' ? 'warn' : ''}`}
        >
          <span aria-hidden="true">{SHAPES[stream.state] ?? '?'}</span> {stream.state}
        </span>
      }
    >
      <p class="flow">
        <span class="ends">{stream.producers.join(', ') || 'no producer'}</span>
        <span class="arrow" aria-label="feeds">
          ⟶
        </span>
        <span class="frontier">{amount(stream.frontier)}</span>
        <span class="arrow" aria-label="read by">
          ⟶
        </span>
        <span class="ends">
          {stream.consumers.length === 0
            ? 'no consumer'
            : stream.consumers.map(({ name, waits }, i) => (
                <span key={name}>
                  {i > 0 ? ', ' : ''}
                  {name}
                  {waits ? <small> waits</small> : null}
                </span>
              ))}
        </span>
      </p>
      <Chart
        title={
          stream.rate > 0
            ? `${stream.unit === 'bytes' ? formatBytes(stream.rate) : Math.round(stream.rate)}/s of late`
            : 'rate'
        }
        lines={[{ name: 'rate', points: stream.over, tone: 'one', isArea: true }]}
        format={rate}
        until={until}
        isOver={run.state !== 'running'}
      />
      <span class="sr">over {formatDuration(until)}</span>
    </Card>
  )
}
