import type { NodeRow, NodesSection } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatPercent, plural } from '../../src/report/format.ts'
import { Chart, Meter } from '../charts.tsx'
import { Card, Loading } from '../parts.tsx'
import { useSection } from '../store.ts'
import { Table, type Column } from '../table.tsx'

/** Load and memory of each machine, and what travels between them. */
export function NodesView(): preact.JSX.Element {
  const section = useSection('nodes')
  const run = useSection('run')
  if (!section || !run) return <Loading />
  return (
    <div class="nodes">
      <div class="grid-cards">
        {section.nodes.map(node => (
          <Card
            key={node.name}
            title={node.name}
            aside={`${node.hasLeft === null ? '' : `${node.hasLeft} · `}${plural(node.running, 'task')} running, ${formatCount(node.done)} done`}
          >
            <Chart
              title="CPUs that tasks hold"
              lines={[{ name: 'busy', points: node.busy, tone: 'one', isArea: true }]}
              levels={[{ name: 'CPUs', value: node.cpus }]}
              format={value => String(Math.round(value * 10) / 10)}
              until={run.elapsed}
              isOver={run.state !== 'running'}
            />
            <Meter
              label={run.state === 'running' ? 'used so far' : 'CPUs used'}
              share={node.busyShare}
              text={formatPercent(node.busyShare)}
            />
            <Meter
              label="memory"
              share={node.memory > 0 ? node.claimed / node.memory : 0}
              text={`tasks asked for ${formatBytes(node.claimed)} of ${formatBytes(node.memory)}`}
            />
            {node.measured === null ? null : <Measured {...node.measured} cpus={node.cpus} />}
          </Card>
        ))}
      </div>
      {section.transfers.length === 0 ? null : (
        <Card title="Transfers" aside="inputs of tasks that another node made">
          <Table
            name="Transfers"
            columns={TRANSFERS}
            rows={section.transfers}
            keyOf={({ from, to }) => `${from}>${to}`}
          />
        </Card>
      )}
    </div>
  )
}

/** What the system counted, the last time that a page was open. */
function Measured({
  rss,
  available,
  memory,
  load,
  cpus,
}: NonNullable<NodeRow['measured']> & { cpus: number }): preact.JSX.Element {
  const used = memory - available
  return (
    <>
      <Meter
        label="measured"
        share={memory > 0 ? used / memory : 0}
        tone={used > memory * 0.9 ? 'bad' : ''}
        text={`${formatBytes(used)} of ${formatBytes(memory)} in use, ${formatBytes(rss)} by threads of tasks`}
      />
      <Meter
        label="load"
        share={cpus > 0 ? load / cpus : 0}
        text={`${load} of ${plural(cpus, 'CPU')}, over one minute`}
      />
    </>
  )
}

const TRANSFERS: Column<NodesSection['transfers'][number]>[] = [
  { title: 'from', cell: row => row.from },
  { title: 'to', cell: row => row.to },
  { title: 'inputs', isNumber: true, cell: row => formatCount(row.count) },
  {
    title: 'size of files and large values',
    isNumber: true,
    cell: row => (row.bytes > 0 ? formatBytes(row.bytes) : <small>not measured</small>),
  },
]
