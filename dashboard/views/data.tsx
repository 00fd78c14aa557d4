import type { DataRow } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, plural } from '../../src/report/format.ts'
import { Chart } from '../charts.tsx'
import { Card, Empty, Loading, TaskLink } from '../parts.tsx'
import { useSection } from '../store.ts'
import { Bar, Table, type Column } from '../table.tsx'

/** The largest data that are there, and who keeps them. */
export function DataView(): preact.JSX.Element {
  const data = useSection('data')
  const run = useSection('run')
  if (!data) return <Loading />
  const { intermediate } = data
  if (data.largest.length === 0 && intermediate === null && data.values.most === 0)
    return (
      <Empty>
        No file of a known size and no large value is there. What tasks read or make is shown here.
      </Empty>
    )
  const most = data.largest[0]?.bytes ?? 1
  return (
    <div class="data">
      <div class="tiles">
        <div class="tile">
          <span class="label">Files now</span>
          <span class="value">{formatBytes(data.files.bytes)}</span>
          <span class="note">in {plural(data.files.count, 'file')}</span>
        </div>
        {data.values.most === 0 ? null : (
          <div class="tile">
            <span class="label">Large values now</span>
            <span class="value">{formatBytes(data.values.bytes)}</span>
            <span class="note">
              {plural(data.values.count, 'value')}, at most {formatBytes(data.values.most)} at one time
            </span>
          </div>
        )}
        <div class="tile">
          <span class="label">Made in all</span>
          <span class="value">{formatBytes(data.madeBytes)}</span>
          <span class="note">of files, by all tasks</span>
        </div>
        {intermediate === null ? null : (
          <div class="tile">
            <span class="label">Temporary files</span>
            <span class="value">{formatBytes(intermediate.bytes)}</span>
            <span class="note">of at most {formatBytes(intermediate.limit)}</span>
          </div>
        )}
      </div>
      {intermediate === null ? null : (
        <Card
          title="Temporary files against their bound"
          aside="--max-intermediate; tasks that would go beyond it wait"
        >
          <Chart
            title="bytes on disk"
            lines={[{ name: 'temporary files', points: intermediate.over, tone: 'one', isArea: true }]}
            levels={[{ name: 'bound', value: intermediate.limit }]}
            format={formatBytes}
            until={run?.elapsed ?? 0}
            isOver={run?.state !== 'running'}
          />
        </Card>
      )}
      <Card
        title="Largest data"
        aside="files that tasks still read, the last version of each, and values in memory from 64 KiB on"
      >
        <Table name="Largest data" columns={columns(most)} rows={data.largest} keyOf={row => row.version} />
      </Card>
    </div>
  )
}

const placeOf = ({ isValue, place }: DataRow): preact.ComponentChildren =>
  !isValue ? (place ?? '') : place === null ? 'memory' : `memory of ${place} only`

const columns = (most: number): Column<DataRow>[] => [
  { title: 'file or value', class: 'name', cell: row => row.name },
  { title: 'size', isNumber: true, cell: row => formatBytes(row.bytes) },
  { title: 'against the largest', cell: row => <Bar share={row.bytes / most} /> },
  {
    title: 'made by',
    cell: ({ maker }) => (maker === null ? <small>was there before</small> : <TaskLink {...maker} />),
  },
  {
    title: 'kept for',
    cell: ({ holders, holderCount, isValue }) =>
      holderCount === 0 ? (
        <small>{isValue ? 'the program' : 'a result'}</small>
      ) : (
        <>
          {holders.map(holder => (
            <span key={holder.task}>
              <TaskLink {...holder} />{' '}
            </span>
          ))}
          {holderCount > holders.length ? (
            <small>and {formatCount(holderCount - holders.length)} more</small>
          ) : null}
        </>
      ),
  },
  { title: 'place', cell: placeOf },
]
