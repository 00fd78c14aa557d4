import { changeText, headline, verdictText } from '../src/report/compare/compare-lines.ts'
import type { Comparison, RunTotals } from '../src/report/compare/comparison.ts'
import { formatBytes, formatCount, formatDuration, formatPercent } from '../src/report/format.ts'
import { Card } from './parts.tsx'

const SHAPES: Record<string, string> = { slower: '▲', faster: '▼', same: '=' }

/** Two runs side by side: what became slower, kind by kind. */
export function ComparePage({ comparison }: { comparison: Comparison }): preact.JSX.Element {
  const { before, after, kinds, doubts } = comparison
  const most = Math.max(...kinds.map(kind => Math.abs(kind.costMs)), 1)
  const rows: [string, (run: RunTotals) => string][] = [
    ['took', run => formatDuration(run.elapsed)],
    ['tasks', run => formatCount(run.tasks)],
    ['failed', run => formatCount(run.failed)],
    ['CPUs', run => String(run.cpus)],
    ['CPUs used', run => (run.cpuUsed === null ? '' : formatPercent(run.cpuUsed))],
    ['running time', run => formatDuration(run.busyMs)],
    ['files made', run => formatBytes(run.bytes)],
  ]
  return (
    <div class="page report">
      <header class="top">
        <div class="who">
          <span class="mark" aria-hidden="true">
            ≋
          </span>
          <h1>
            {before.name} and {after.name}
          </h1>
        </div>
      </header>
      <main>
        <p class="lead">{headline(comparison)}</p>
        <Card title="The runs">
          <table>
            <thead>
              <tr>
                <td />
                <th scope="col" class="number">
                  {before.name}
                </th>
                <th scope="col" class="number">
                  {after.name}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(([label, read]) => (
                <tr key={label}>
                  <th scope="row">{label}</th>
                  <td class="number">{read(before)}</td>
                  <td class="number">{read(after)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {doubts.length > 0 ? <p class="hint">They differ in {doubts.join('; ')}.</p> : null}
        </Card>
        <Card
          title="Kinds of tasks"
          aside="by how much running time the change makes; changes within noise are not called changes"
        >
          <div class="scroll" tabIndex={0} role="region" aria-label="Kinds of tasks, a table">
            <table>
              <thead>
                <tr>
                  <th scope="col">kind</th>
                  <th scope="col" class="number">
                    tasks
                  </th>
                  <th scope="col" class="number">
                    mean before
                  </th>
                  <th scope="col" class="number">
                    mean after
                  </th>
                  <th scope="col" class="number">
                    change
                  </th>
                  <th scope="col">verdict</th>
                  <th scope="col">running time</th>
                </tr>
              </thead>
              <tbody>
                {kinds.map(kind => (
                  <tr key={kind.name}>
                    <th scope="row">{kind.name}</th>
                    <td class="number">
                      {formatCount(kind.before?.count ?? 0)} / {formatCount(kind.after?.count ?? 0)}
                    </td>
                    <td class="number">{kind.before ? formatDuration(kind.before.mean) : ''}</td>
                    <td class="number">{kind.after ? formatDuration(kind.after.mean) : ''}</td>
                    <td class="number">{kind.change ? changeText(kind.change.share) : ''}</td>
                    <td class={`verdict ${kind.verdict}`}>
                      <span aria-hidden="true">{SHAPES[kind.verdict] ?? ''}</span> {verdictText(kind)}
                    </td>
                    <td>
                      <span class="stack" aria-hidden="true">
                        <span
                          class={kind.costMs > 0 ? 'running' : 'done'}
                          style={{ width: `${(Math.abs(kind.costMs) / most) * 100}%` }}
                        />
                      </span>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Card>
      </main>
    </div>
  )
}
