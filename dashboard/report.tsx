import { useEffect } from 'preact/hooks'
import { formatCount } from '../src/report/format.ts'
import { StateBadge } from './header.tsx'
import { useHash } from './hash.ts'
import { useSection, useStore } from './store.ts'
import { TaskPanel } from './task-panel.tsx'
import { DataView } from './views/data.tsx'
import { Critical, Graph } from './views/graph.tsx'
import { NodesView } from './views/nodes.tsx'
import { About, Failures, Findings, Kinds, Numbers, Running } from './views/overview.tsx'
import { Storage } from './views/storage.tsx'
import { StreamsView } from './views/streams.tsx'
import { Timeline } from './views/timeline.tsx'

/** A report: all views below each other, to read from top to bottom or to print. */
export function Report({ merged }: { merged: number }): preact.JSX.Element {
  const store = useStore()
  const [{ task }, go] = useHash()
  useEffect(
    () =>
      store.show(['run', 'overview', 'failures', 'timeline', 'graph', 'storage', 'streams', 'data', 'nodes']),
    [store],
  )
  const run = useSection('run')
  const overview = useSection('overview')
  const failures = useSection('failures')
  const timeline = useSection('timeline')
  const graph = useSection('graph')
  const storage = useSection('storage')
  useEffect(() => {
    if (run) document.title = `${run.name} · Millrace report`
  }, [run?.name])
  if (!run || !overview || !timeline || !graph || !storage) return <main />
  return (
    <div class={`page report${task === null ? '' : ' with-panel'}`}>
      <header class="top">
        <div class="who">
          <span class="mark" aria-hidden="true">
            ≋
          </span>
          <h1>{run.name}</h1>
          <StateBadge state={run.state} />
          {run.simulated ? <span class="tag">simulated</span> : null}
        </div>
      </header>
      <main>
        <Numbers overview={overview} run={run} />
        <div class="columns">
          <div class="wide">
            <Running overview={overview} run={run} />
          </div>
          <About run={run} />
        </div>
        <Findings overview={overview} />
        {failures && failures.count > 0 ? (
          <Failures failures={failures.failures} count={failures.count} />
        ) : null}
        <Part title="Timeline">
          {merged > 0 ? (
            <p class="hint">
              {formatCount(merged)} slices were merged to keep this file small.{' '}
              <code>millrace dashboard {run.name}</code> shows each of them.
            </p>
          ) : null}
          <Timeline section={timeline} />
        </Part>
        <Part title="Kinds">
          <Kinds kinds={overview.kinds} leftOut={overview.kindsLeftOut} />
        </Part>
        {storage.devices.length > 0 ? (
          <Part title="Storage">
            <Storage storage={storage} run={run} />
          </Part>
        ) : null}
        <Part title="Graph">
          <Graph graph={graph} />
          <Critical section={graph} />
        </Part>
        {run.hasStreams ? (
          <Part title="Streams">
            <StreamsView />
          </Part>
        ) : null}
        <Part title="Data">
          <DataView />
        </Part>
        <Part title="Nodes">
          <NodesView />
        </Part>
      </main>
      {task === null ? null : <TaskPanel id={task} onClose={() => go({ task: null })} />}
    </div>
  )
}

function Part({
  title,
  children,
}: {
  title: string
  children: preact.ComponentChildren
}): preact.JSX.Element {
  return (
    <section class="part">
      <h2>{title}</h2>
      {children}
    </section>
  )
}
