import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Counts, CriticalStep, GraphNode, GraphSection } from '../../src/report/dashboard/protocol.ts'
import { formatCount, formatDuration, formatPercent, plural } from '../../src/report/format.ts'
import { isStriped, kindColour, STATE_SHAPES, STATE_WORDS } from '../colours.ts'
import { openTask, useHash } from '../hash.ts'
import { layoutOf, NODE_HEIGHT, NODE_WIDTH, type Placed } from '../layout.ts'
import { Card, Empty, Loading, TaskLink } from '../parts.tsx'
import { useSection, useStore } from '../store.ts'
import { Table, type Column } from '../table.tsx'

/** The graph of kinds; or of the tasks around one, when one is chosen. */
export function GraphView(): preact.JSX.Element {
  const section = useSection('graph')
  const { source } = useStore()
  const [{ task }, go] = useHash()
  const [hops, setHops] = useState(1)
  const [near, setNear] = useState<GraphSection | null>(null)
  useEffect(() => {
    setNear(null)
    if (task === null) return
    let isLate = false
    source.near(task, hops).then(
      graph => (isLate ? undefined : setNear(graph)),
      () => {},
    )
    return () => (isLate = true)
  }, [task, hops, section?.critical.length])
  if (!section) return <Loading />
  if (section.nodes.length === 0) return <Empty>The graph has no task yet.</Empty>
  const shown = task !== null && near ? near : section
  return (
    <div class="graph-view">
      <div class="toolbar">
        {shown === near ? (
          <>
            <button type="button" onClick={() => go({ task: null })}>
              All kinds
            </button>
            <label>
              Steps around it{' '}
              <select value={hops} onChange={event => setHops(Number(event.currentTarget.value))}>
                {[1, 2, 3, 4].map(count => (
                  <option key={count} value={count}>
                    {count}
                  </option>
                ))}
              </select>
            </label>
            {shown.leftOut > 0 ? <span>{formatCount(shown.leftOut)} more are not drawn</span> : null}
          </>
        ) : (
          <span class="hint">
            A box is a kind of task, a line what one passes to the other. Choose a box to see tasks of it; the
            thick path is the critical one.
          </span>
        )}
      </div>
      <Graph graph={shown} />
      <Critical section={section} />
    </div>
  )
}

export function Graph({ graph }: { graph: GraphSection }): preact.JSX.Element {
  const { source } = useStore()
  const layout = useMemo(
    () => layoutOf(graph.nodes, graph.edges),
    [graph.nodes.map(node => node.id).join(), graph.edges.map(edge => edge.from + edge.to).join()],
  )
  const places = new Map(layout.nodes.map(placed => [placed.node.id, placed]))
  const fresh = new Map(graph.nodes.map(node => [node.id, node]))
  const choose = (node: GraphNode): void => {
    if (node.task !== null) openTask(node.task)
    else if (source.isLive)
      void source.find(node.name).then(
        found => found[0] && openTask(found[0].task),
        () => {},
      )
  }
  return (
    <div class="graph" tabIndex={0} role="region" aria-label="Graph of tasks">
      <svg width={layout.width} height={layout.height} viewBox={`0 0 ${layout.width} ${layout.height}`}>
        {graph.edges.map(({ from, to, count, isCritical }) => (
          <Edge
            key={`${from}>${to}`}
            from={places.get(from)}
            to={places.get(to)}
            count={count}
            isCritical={isCritical}
          />
        ))}
        {layout.nodes.map(({ node, x, y }) => (
          <Box key={node.id} placed={{ node: fresh.get(node.id) ?? node, x, y }} onChoose={choose} />
        ))}
      </svg>
    </div>
  )
}

function Edge({
  from,
  to,
  count,
  isCritical,
}: {
  from: Placed | undefined
  to: Placed | undefined
  count: number
  isCritical: boolean
}): preact.JSX.Element | null {
  if (!from || !to || from === to) return null
  const x1 = from.x + NODE_WIDTH
  const y1 = from.y + NODE_HEIGHT / 2
  const y2 = to.y + NODE_HEIGHT / 2
  const bend = Math.max(30, Math.abs(to.x - x1) / 2)
  const path = `M${x1} ${y1}C${x1 + bend} ${y1} ${to.x - bend} ${y2} ${to.x} ${y2}`
  return (
    <g class={`edge${isCritical ? ' critical' : ''}`}>
      <path d={path} />
      {count > 1 ? (
        <text x={(x1 + to.x) / 2} y={(y1 + y2) / 2 - 5} text-anchor="middle">
          {formatCount(count)}
        </text>
      ) : null}
    </g>
  )
}

function Box({
  placed: { node, x, y },
  onChoose,
}: {
  placed: Placed
  onChoose: (node: GraphNode) => void
}): preact.JSX.Element {
  const about = node.counts
    ? progressText(node.counts.submitted - leftOf(node.counts), node.counts.submitted)
    : `${STATE_SHAPES[node.state ?? 'unknown']} ${STATE_WORDS[node.state ?? 'unknown']}`
  const state = node.state ?? (node.counts ? stateOf(node.counts) : 'unknown')
  return (
    <g
      class={`node ${state}${node.isCritical ? ' critical' : ''}`}
      transform={`translate(${x} ${y})`}
      // In SVG attributes have exactly this case.
      tabindex={0}
      role="button"
      onClick={() => onChoose(node)}
      onKeyDown={event => {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault()
          onChoose(node)
        }
      }}
    >
      <desc>{node.isCritical ? `${node.name}, on the critical path` : node.name}</desc>
      <rect class="box" width={NODE_WIDTH} height={NODE_HEIGHT} rx={8} />
      <rect width={6} height={NODE_HEIGHT - 16} x={8} y={8} rx={3} fill={kindColour(node.kind)} />
      {isStriped(node.kind) ? (
        <rect class="stripe" width={6} height={6} x={8} y={NODE_HEIGHT / 2 - 3} />
      ) : null}
      <foreignObject class="name" x={22} y={6} width={NODE_WIDTH - 30} height={20}>
        <div>{node.name}</div>
      </foreignObject>
      <text class="about" x={22} y={38}>
        {about}
      </text>
      <text class="time" x={NODE_WIDTH - 10} y={38} text-anchor="end">
        {node.busyMs > 0 ? formatDuration(node.busyMs) : ''}
      </text>
      {node.counts ? <CountBar counts={node.counts} /> : null}
    </g>
  )
}

const leftOf = ({ waiting, ready, running, blocked }: Counts): number => waiting + ready + running + blocked

/** Short enough to stand beside a time. */
function progressText(ended: number, all: number): string {
  if (ended === all && all >= 1000) return `all ${formatCount(all)}`
  return all < 10_000
    ? `${formatCount(ended)} of ${formatCount(all)}`
    : `${formatPercent(ended / all)} of ${formatCount(all)}`
}

const stateOf = (counts: Counts): string =>
  counts.failed > 0 ? 'failed' : counts.running > 0 ? 'running' : leftOf(counts) === 0 ? 'done' : 'waiting'

function CountBar({ counts }: { counts: Counts }): preact.JSX.Element {
  const room = NODE_WIDTH - 32
  const share = (count: number): number => (count / Math.max(1, counts.submitted)) * room
  const done = share(counts.done)
  const failed = share(counts.failed + counts.ignored)
  const cancelled = share(counts.cancelled)
  return (
    <g class="counts">
      <rect class="all" x={22} y={44} width={room} height={4} rx={2} />
      <rect class="done" x={22} y={44} width={done} height={4} rx={2} />
      <rect class="failed" x={22 + done} y={44} width={failed} height={4} />
      <rect class="cancelled" x={22 + done + failed} y={44} width={cancelled} height={4} />
      <rect
        class="running"
        x={22 + done + failed + cancelled}
        y={44}
        width={share(counts.running)}
        height={4}
      />
    </g>
  )
}

export function Critical({ section: { critical } }: { section: GraphSection }): preact.JSX.Element | null {
  if (critical.length === 0) return null
  const most = Math.max(...critical.steps.map(step => step.waitMs + step.runMs), 1)
  const waited = critical.steps.reduce((sum, step) => sum + step.waitMs, 0)
  const columns: Column<CriticalStep>[] = [
    { title: 'task', class: 'name', cell: step => <TaskLink task={step.task} name={step.name} /> },
    {
      title: 'waited, then ran',
      cell: ({ waitMs, runMs }) => (
        <span class="stack" aria-hidden="true">
          <span class="cancelled" style={{ width: `${(waitMs / most) * 100}%` }} />
          <span class="done" style={{ width: `${(runMs / most) * 100}%` }} />
        </span>
      ),
    },
    { title: 'waited', isNumber: true, cell: step => (step.waitMs >= 1 ? formatDuration(step.waitMs) : '') },
    { title: 'ran', isNumber: true, cell: step => formatDuration(step.runMs) },
  ]
  return (
    <Card title="Critical path" aside={`${plural(critical.length, 'task')}, ${formatDuration(critical.ms)}`}>
      <p class="hint">
        Each task waited for the one before it: the run cannot end earlier unless one of them does.
        {waited > critical.ms / 2
          ? ` ${formatDuration(waited)} went to waiting for a CPU or a device, and not to running.`
          : ''}
        {critical.length > critical.steps.length ? ` Shown are the last ${critical.steps.length}.` : ''}
      </p>
      <Table name="Critical path" columns={columns} rows={critical.steps} keyOf={step => step.task} />
    </Card>
  )
}
