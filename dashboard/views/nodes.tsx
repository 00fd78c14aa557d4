import { formatBytes, formatCount, formatPercent, plural } from '../../src/report/format.ts'
import { Chart, Meter } from '../charts.tsx'
import { Card, Loading } from '../parts.tsx'
import { useSection } from '../store.ts'

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
            />
            <Meter label="used so far" share={node.busyShare} text={formatPercent(node.busyShare)} />
            <Meter
              label="memory"
              share={node.memory > 0 ? node.claimed / node.memory : 0}
              text={`${formatBytes(node.claimed)} of ${formatBytes(node.memory)} claimed`}
            />
          </Card>
        ))}
      </div>
      {section.transfers.length === 0 ? null : (
        <Card title="Transfers" aside="inputs that another node made">
          <div class="scroll" tabIndex={0} role="region" aria-label="Transfers, a table">
            <table>
              <thead>
                <tr>
                  <th scope="col">from</th>
                  <th scope="col">to</th>
                  <th scope="col" class="number">
                    inputs
                  </th>
                  <th scope="col" class="number">
                    size
                  </th>
                </tr>
              </thead>
              <tbody>
                {section.transfers.map(({ from, to, count, bytes }) => (
                  <tr key={`${from}>${to}`}>
                    <td>{from}</td>
                    <td>{to}</td>
                    <td class="number">{formatCount(count)}</td>
                    <td class="number">{bytes > 0 ? formatBytes(bytes) : ''}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      )}
    </div>
  )
}
