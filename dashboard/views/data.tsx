import { formatBytes, formatCount, formatPercent } from '../../src/report/format.ts'
import { Meter } from '../charts.tsx'
import { Card, Empty, Loading, TaskLink } from '../parts.tsx'
import { useSection } from '../store.ts'

/** The largest data that are there, and who keeps them. */
export function DataView(): preact.JSX.Element {
  const data = useSection('data')
  if (!data) return <Loading />
  if (data.largest.length === 0)
    return <Empty>No file of a known size is there. Files that tasks read or make are shown here.</Empty>
  const most = data.largest[0]?.bytes ?? 1
  return (
    <div class="data">
      <div class="tiles">
        <div class="tile">
          <span class="label">There now</span>
          <span class="value">{formatBytes(data.aliveBytes)}</span>
          <span class="note">in {formatCount(data.alive)} versions</span>
        </div>
        <div class="tile">
          <span class="label">Made in all</span>
          <span class="value">{formatBytes(data.madeBytes)}</span>
          <span class="note">of files</span>
        </div>
        {data.intermediate === null ? null : (
          <div class="tile">
            <span class="label">Temporary files</span>
            <span class="value">{formatBytes(data.intermediate.bytes)}</span>
            <span class="note">
              {data.intermediate.limit === null
                ? 'without a bound'
                : `of ${formatBytes(data.intermediate.limit)}`}
            </span>
          </div>
        )}
      </div>
      {data.intermediate?.limit ? (
        <Card title="Temporary files against their bound">
          <Meter
            label="temporary"
            share={data.intermediate.bytes / data.intermediate.limit}
            text={formatPercent(data.intermediate.bytes / data.intermediate.limit)}
          />
        </Card>
      ) : null}
      <Card title="Largest versions" aside="those that tasks still read, and the last version of each file">
        <div class="scroll" tabIndex={0} role="region" aria-label="Largest versions, a table">
          <table>
            <thead>
              <tr>
                <th scope="col">file</th>
                <th scope="col" class="number">
                  size
                </th>
                <th scope="col">share</th>
                <th scope="col">made by</th>
                <th scope="col">kept for</th>
                <th scope="col">device</th>
              </tr>
            </thead>
            <tbody>
              {data.largest.map(({ version, name, bytes, maker, holders, holderCount, device }) => (
                <tr key={version}>
                  <th scope="row" class="name">
                    {name}
                  </th>
                  <td class="number">{formatBytes(bytes)}</td>
                  <td>
                    <span class="stack" aria-hidden="true">
                      <span class="done" style={{ width: `${(bytes / most) * 100}%` }} />
                    </span>
                  </td>
                  <td>{maker === null ? <small>was there</small> : <TaskLink {...maker} />}</td>
                  <td>
                    {holders.map(holder => (
                      <span key={holder.task}>
                        <TaskLink {...holder} />{' '}
                      </span>
                    ))}
                    {holderCount > holders.length ? (
                      <small>and {formatCount(holderCount - holders.length)} more</small>
                    ) : null}
                    {holderCount === 0 ? <small>a result</small> : null}
                  </td>
                  <td>{device ?? ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
    </div>
  )
}
