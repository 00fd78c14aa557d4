import type { FailureRow, KindRow, OverviewSection, RunSection } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from '../../src/report/format.ts'
import { Chart, Histogram } from '../charts.tsx'
import { isStriped, kindColour, STATE_SHAPES } from '../colours.ts'
import { Card, Empty, Loading, TaskLink } from '../parts.tsx'
import { useSection } from '../store.ts'
import { Table, type Column } from '../table.tsx'

export function Overview(): preact.JSX.Element {
  const overview = useSection('overview')
  const run = useSection('run')
  const failures = useSection('failures')
  if (!overview || !run) return <Loading />
  if (overview.counts.submitted === 0)
    return <Empty>No task has been called yet. The page fills as soon as the program calls one.</Empty>
  return (
    <div class="overview">
      <Numbers overview={overview} run={run} />
      <div class="columns">
        <div class="wide">
          <Running overview={overview} run={run} />
        </div>
        {run.state === 'running' ? (
          <Waits overview={overview} isPaused={run.isPaused} />
        ) : (
          <About run={run} />
        )}
      </div>
      {failures && failures.count > 0 ? (
        <Failures failures={failures.failures} count={failures.count} />
      ) : null}
      <Findings overview={overview} />
      <Kinds kinds={overview.kinds} leftOut={overview.kindsLeftOut} />
      <div class="columns">
        <Slowest overview={overview} />
        <Notes overview={overview} />
      </div>
    </div>
  )
}

export function Numbers({
  overview,
  run,
}: {
  overview: OverviewSection
  run: RunSection
}): preact.JSX.Element {
  const { counts, eta, cpusBusy, cpusIdleShare, retried } = overview
  const { cpus, message } = run
  const isLive = run.state === 'running'
  const tile = (label: string, value: string, note = '', tone = ''): preact.JSX.Element => (
    <div class={`tile ${tone}`} key={label}>
      <span class="label">{label}</span>
      <span class="value">{value}</span>
      <span class="note">{note}</span>
    </div>
  )
  const seconds = Math.max(run.elapsed / 1000, 1e-3)
  const used = cpusIdleShare === null ? '' : `${formatPercent(1 - cpusIdleShare)} used so far`
  return (
    <div class="tiles">
      {tile('Done', formatCount(counts.done), `of ${formatCount(counts.submitted)}`)}
      {isLive
        ? null
        : tile('Took', formatDuration(run.elapsed), `${rateText(counts.done / seconds)} tasks per second`)}
      {isLive
        ? tile(
            'Running',
            formatCount(counts.running),
            run.isPaused ? 'paused: nothing starts' : `${formatCount(counts.ready)} ready`,
          )
        : null}
      {isLive
        ? tile(
            'Time left',
            eta === null ? '–' : `≈ ${formatDuration(eta)}`,
            eta === null ? 'no basis yet' : 'from the times so far',
          )
        : null}
      {isLive
        ? tile('CPUs busy', `${Math.round(cpusBusy * 10) / 10} of ${cpus}`, used)
        : tile('CPUs used', cpusIdleShare === null ? '–' : formatPercent(1 - cpusIdleShare), `of ${cpus}`)}
      {isLive ? null : tile('At once', overview.parallelism.toFixed(1), 'tasks, on average while any ran')}
      {tile(
        'Failed',
        formatCount(counts.failed),
        [
          counts.cancelled > 0 ? `${formatCount(counts.cancelled)} cancelled` : '',
          counts.ignored > 0 ? `${formatCount(counts.ignored)} ignored` : '',
          retried > 0 ? `${formatCount(retried)} repeated` : '',
        ]
          .filter(Boolean)
          .join(', ') || 'none cancelled or repeated',
        counts.failed > 0 ? 'bad' : '',
      )}
      {message === null ? null : <p class="message">{message}</p>}
    </div>
  )
}

/** How many tasks ran at one time. */
export function Running({
  overview,
  run,
}: {
  overview: OverviewSection
  run: RunSection
}): preact.JSX.Element {
  return (
    <Card
      title="Tasks running"
      aside={`${overview.parallelism.toFixed(1)} at once, on average while any ran`}
    >
      <Chart
        title="tasks at one time"
        lines={[{ name: 'tasks', points: overview.busy, tone: 'one', isArea: true }]}
        levels={[{ name: 'CPUs', value: run.cpus }]}
        format={value => String(Math.round(value * 10) / 10)}
        until={run.elapsed}
        isOver={run.state !== 'running'}
      />
    </Card>
  )
}

const rateText = (rate: number): string => (rate >= 100 ? formatCount(Math.round(rate)) : rate.toPrecision(2))

/** What ran, and how to run it again. */
export function About({ run }: { run: RunSection }): preact.JSX.Element {
  // How a simulation was asked for is not in its journal.
  const again =
    run.again ??
    (run.simulated
      ? ''
      : ['millrace run', run.program, ...(run.args.length > 0 ? ['--', ...run.args] : [])].join(' '))
  const machine = [
    plural(run.nodes, 'node'),
    plural(run.cpus, 'CPU'),
    ...(run.devices > 0 ? [plural(run.devices, 'device')] : []),
  ]
  const rows: [string, string][] = [
    ['program', [run.program, ...run.args].join(' ')],
    ['folder', run.cwd],
    ['began', run.simulated ? 'simulated' : run.wallTime.replace('T', ' ').replace(/\.\d+Z/, ' UTC')],
    ['machine', machine.join(', ')],
    ['policy', run.policy],
    ['version', run.version],
    ['again', again],
  ]
  return (
    <Card title="About the run" class="about">
      <dl>
        {rows
          .filter(([, value]) => value !== '')
          .map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
    </Card>
  )
}

function Waits({
  overview: { waits, reasons },
  isPaused,
}: {
  overview: OverviewSection
  isPaused: boolean
}): preact.JSX.Element {
  const rows: [string, number][] = [
    ['inputs', waits.inputs],
    [isPaused ? 'the run to go on' : 'a CPU', waits.cpu],
    ['a device', waits.device],
    ['room on a device', waits.room],
    ['tasks they called', waits.called],
  ]
  const most = Math.max(1, ...rows.map(([, count]) => count))
  return (
    <Card title="What tasks wait for">
      <table class="bars">
        <tbody>
          {rows.map(([label, count]) => (
            <tr key={label}>
              <th scope="row">{label}</th>
              <td class="bar">
                <span style={{ width: `${(count / most) * 100}%` }} />
              </td>
              <td class="number">{formatCount(count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <ul class="reasons">
        {reasons.slice(0, 4).map(({ task, name, reason }) => (
          <li key={task}>
            <TaskLink task={task} name={name} /> <small>{reason}</small>
          </li>
        ))}
      </ul>
    </Card>
  )
}

export function Findings({
  overview: { findings, warnings },
}: {
  overview: OverviewSection
}): preact.JSX.Element | null {
  if (findings.length + warnings.length === 0) return null
  return (
    <Card title="Findings" class="findings">
      <ul>
        {findings.map(text => (
          <li key={text}>{text}</li>
        ))}
        {warnings.map(text => (
          <li key={text} class="warning">
            <b>Warning:</b> {text}
          </li>
        ))}
      </ul>
    </Card>
  )
}

export function Failures({
  failures,
  count,
}: {
  failures: readonly FailureRow[]
  count: number
}): preact.JSX.Element {
  return (
    <Card title={`${formatCount(count)} ${count === 1 ? 'task' : 'tasks'} failed`} class="failures">
      {failures.map((failure, i) => (
        <details key={failure.task} open={i < 3}>
          <summary>
            <span class="shape failed" aria-hidden="true">
              ✕
            </span>{' '}
            <b>{failure.name}</b> <span class="cause">{failure.cause.split('\n')[0]}</span>
          </summary>
          <div class="failure">
            {failure.cause.includes('\n') ? (
              <p class="cause">{failure.cause.split('\n').slice(1).join('\n')}</p>
            ) : null}
            {failure.command === null ? null : (
              <p>
                <span class="label">command</span> <code>{failure.command}</code>
              </p>
            )}
            {failure.tail.length === 0 ? null : <pre tabIndex={0}>{tailText(failure)}</pre>}
            {failure.tail.length === 0 && failure.stack.length > 1 ? (
              <pre tabIndex={0}>{failure.stack.slice(1).join('\n')}</pre>
            ) : null}
            <p class="links">
              at {formatDuration(failure.at)}
              {failure.attempt > 1 ? `, attempt ${failure.attempt}` : ''} ·{' '}
              <TaskLink task={failure.task} name="its story" />
            </p>
          </div>
        </details>
      ))}
      {count > failures.length ? (
        <p>and {formatCount(count - failures.length)} more, all in the journal</p>
      ) : null}
    </Card>
  )
}

const tailText = ({ tail, tailCut }: FailureRow): string =>
  tailCut === null
    ? tail.join('\n')
    : [...tail.slice(0, tailCut.first), '…', ...tail.slice(tailCut.first)].join('\n')

export function Kinds({
  kinds,
  leftOut,
}: {
  kinds: readonly KindRow[]
  leftOut: number
}): preact.JSX.Element {
  return (
    <Card title="Kinds of tasks" class="kinds">
      <Table name="Kinds of tasks" columns={KINDS} rows={kinds} keyOf={row => row.kind} />
      {leftOut > 0 ? <p>and {formatCount(leftOut)} more kinds with less running time</p> : null}
    </Card>
  )
}

const leftOf = (kind: KindRow): number => kind.waiting + kind.ready + kind.blocked

const KINDS: Column<KindRow>[] = [
  { title: 'kind', class: 'kind', cell: kind => <KindName kind={kind} /> },
  { title: 'progress', cell: kind => <KindProgress kind={kind} /> },
  { title: 'done', isNumber: true, cell: kind => formatCount(kind.done) },
  { title: 'running', isNumber: true, cell: kind => formatCount(kind.running) },
  { title: 'to do', isNumber: true, cell: kind => formatCount(leftOf(kind)) },
  {
    title: 'time left',
    isNumber: true,
    cell: kind =>
      kind.eta === null || leftOf(kind) + kind.running === 0 ? '' : `≈ ${formatDuration(kind.eta)}`,
  },
  { title: 'median', isNumber: true, cell: kind => (kind.done > 0 ? formatDuration(kind.median) : '') },
  { title: '95 of 100 below', isNumber: true, cell: kind => (kind.done > 0 ? formatDuration(kind.p95) : '') },
  {
    title: 'how long they took',
    cell: kind => <Histogram name={kind.name} histogram={kind.histogram} />,
  },
  {
    title: 'most memory',
    isNumber: true,
    cell: kind => (kind.peakBytes > 0 ? formatBytes(kind.peakBytes) : ''),
  },
]

function KindName({ kind }: { kind: KindRow }): preact.JSX.Element {
  return (
    <>
      <i
        class={`swatch${isStriped(kind.kind) ? ' striped' : ''}`}
        style={{ backgroundColor: kindColour(kind.kind) }}
      />
      {`\u00a0${kind.name}`}
      {kind.failed > 0 ? (
        <span class="shape failed">
          {' '}
          {STATE_SHAPES.failed} {formatCount(kind.failed)}
          <span class="sr"> failed</span>
        </span>
      ) : null}
    </>
  )
}

function KindProgress({ kind }: { kind: KindRow }): preact.JSX.Element {
  const share = (count: number): string => `${(count / Math.max(1, kind.submitted)) * 100}%`
  return (
    <span class="stack" aria-hidden="true">
      <span class="done" style={{ width: share(kind.done) }} />
      <span class="failed" style={{ width: share(kind.failed + kind.ignored) }} />
      <span class="cancelled" style={{ width: share(kind.cancelled) }} />
      <span class="running" style={{ width: share(kind.running) }} />
    </span>
  )
}

function Slowest({ overview: { slowest } }: { overview: OverviewSection }): preact.JSX.Element | null {
  if (slowest.length === 0) return null
  return (
    <Card title="Running longest">
      <table>
        <tbody>
          {slowest.map(({ task, name, ms }) => (
            <tr key={task}>
              <td>
                <TaskLink task={task} name={name} />
              </td>
              <td class="number">{formatDuration(ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  )
}

function Notes({ overview: { notes } }: { overview: OverviewSection }): preact.JSX.Element | null {
  if (notes.length === 0) return null
  return (
    <Card title="Notes">
      <ul class="notes">
        {notes.toReversed().map(({ at, level, text }, i) => (
          <li key={i} class={level}>
            <small>{formatDuration(at)}</small> {text}
          </li>
        ))}
      </ul>
    </Card>
  )
}
