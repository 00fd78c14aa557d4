import { changeText, headline, verdictText } from '../src/report/compare/compare-lines.ts'
import type { Comparison, KindComparison, RunTotals } from '../src/report/compare/comparison.ts'
import { formatBytes, formatCount, formatDuration, formatPercent } from '../src/report/format.ts'
import { Card } from './parts.tsx'
import { Bar, Table, type Column } from './table.tsx'

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
          <Table
            name="The runs"
            columns={[
              { title: 'what', cell: ([label]) => label },
              { title: before.name, isNumber: true, cell: ([, read]) => read(before) },
              { title: after.name, isNumber: true, cell: ([, read]) => read(after) },
            ]}
            rows={rows}
            keyOf={([label]) => label}
          />
          {doubts.length > 0 ? <p class="hint">They differ in {doubts.join('; ')}.</p> : null}
        </Card>
        <Card
          title="Kinds of tasks"
          aside="by how much running time the change makes; changes within noise are not called changes"
        >
          <Table name="Kinds of tasks" columns={kindColumns(most)} rows={kinds} keyOf={kind => kind.name} />
        </Card>
      </main>
    </div>
  )
}

const kindColumns = (most: number): Column<KindComparison>[] => [
  { title: 'kind', class: 'kind', cell: kind => kind.name },
  {
    title: 'tasks',
    isNumber: true,
    cell: kind => `${formatCount(kind.before?.count ?? 0)} / ${formatCount(kind.after?.count ?? 0)}`,
  },
  {
    title: 'mean before',
    isNumber: true,
    cell: kind => (kind.before ? formatDuration(kind.before.mean) : ''),
  },
  { title: 'mean after', isNumber: true, cell: kind => (kind.after ? formatDuration(kind.after.mean) : '') },
  { title: 'change', isNumber: true, cell: kind => (kind.change ? changeText(kind.change.share) : '') },
  {
    title: 'verdict',
    cell: kind => (
      <span class={`verdict ${kind.verdict}`}>
        <span aria-hidden="true">{SHAPES[kind.verdict] ?? ''}</span> {verdictText(kind)}
      </span>
    ),
  },
  {
    title: 'running time, more or less',
    cell: kind => <Bar share={Math.abs(kind.costMs) / most} tone={kind.costMs > 0 ? 'running' : 'done'} />,
  },
]
