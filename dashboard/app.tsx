import { useEffect, useState } from 'preact/hooks'
import type { SectionName } from '../src/report/dashboard/protocol.ts'
import { formatCount } from '../src/report/format.ts'
import { Header } from './header.tsx'
import { useHash } from './hash.ts'
import { useSection, useStore } from './store.ts'
import { TaskPanel } from './task-panel.tsx'
import { DataView } from './views/data.tsx'
import { GraphView } from './views/graph.tsx'
import { NodesView } from './views/nodes.tsx'
import { Overview } from './views/overview.tsx'
import { StorageView } from './views/storage.tsx'
import { StreamsView } from './views/streams.tsx'
import { TimelineView } from './views/timeline.tsx'

interface View {
  name: string
  title: string
  sections: readonly SectionName[]
  draw: () => preact.JSX.Element
}

const VIEWS: readonly View[] = [
  {
    name: 'overview',
    title: 'Overview',
    sections: ['overview', 'failures'],
    draw: () => <Overview />,
  },
  { name: 'timeline', title: 'Timeline', sections: ['timeline'], draw: () => <TimelineView /> },
  { name: 'graph', title: 'Graph', sections: ['graph'], draw: () => <GraphView /> },
  { name: 'storage', title: 'Storage', sections: ['storage'], draw: () => <StorageView /> },
  { name: 'streams', title: 'Streams', sections: ['streams'], draw: () => <StreamsView /> },
  { name: 'data', title: 'Data', sections: ['data'], draw: () => <DataView /> },
  { name: 'nodes', title: 'Nodes', sections: ['nodes'], draw: () => <NodesView /> },
]

/** The live page: a header that is always there, one view, and one task beside it. */
export function App(): preact.JSX.Element {
  const store = useStore()
  const [{ view: name, task }, go] = useHash()
  const view = VIEWS.find(one => one.name === name) ?? VIEWS[0]!
  const run = useSection('run')
  const [help, setHelp] = useState(false)
  useEffect(() => store.show(['run', ...view.sections]), [store, view.name])
  const hasFailed = (run?.counts.failed ?? 0) > 0
  // On a phone the tabs are wider than the screen.
  useEffect(() => {
    document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [view.name, hasFailed])
  useEffect(() => {
    document.title = run?.name ? `${run.name} · ${view.title} · Millrace` : 'Millrace'
  }, [run?.name, view.title])
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      if (target.matches('input, textarea, select') || event.ctrlKey || event.metaKey || event.altKey) return
      const index = Number(event.key) - 1
      const chosen = VIEWS[index]
      if (chosen && event.key.length === 1) go({ view: chosen.name })
      else if (event.key === 'Escape') go({ task: null })
      else if (event.key === '?') setHelp(shown => !shown)
      else if (event.key === '/') {
        document.querySelector<HTMLInputElement>('#find')?.focus()
        event.preventDefault()
      }
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
  return (
    <div class={`page${task === null ? '' : ' with-panel'}`}>
      <a class="skip" href="#main" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the view
      </a>
      <Header onHelp={() => setHelp(shown => !shown)} />
      <nav class="tabs" aria-label="Views">
        {VIEWS.map((one, i) => (
          <a
            key={one.name}
            // With a path: a link that begins with # and is out of sight is taken for one that skips to a part of the page.
            href={`./#${one.name}`}
            aria-current={one === view ? 'page' : undefined}
            title={`${one.title} (key ${i + 1})`}
          >
            {one.title}
            {one.name === 'overview' && run && hasFailed ? (
              <span class="count bad">
                {formatCount(run.counts.failed)}
                <span class="sr"> failed</span>
              </span>
            ) : null}
          </a>
        ))}
      </nav>
      {help ? <Keys /> : null}
      <main id="main" tabIndex={-1} aria-label={view.title}>
        {view.draw()}
      </main>
      {task === null ? null : <TaskPanel id={task} onClose={() => go({ task: null })} />}
    </div>
  )
}

function Keys(): preact.JSX.Element {
  const keys: [string, string][] = [
    ['1 – 7', 'choose a view'],
    ['/', 'find a task'],
    ['Esc', 'close the task'],
    ['+ −, W S', 'zoom the timeline'],
    ['← →, A D', 'move in time'],
    ['↑ ↓', 'choose a lane'],
    ['Enter', 'open the task under the cursor'],
    ['0', 'show the whole run'],
    ['F', 'follow the run'],
  ]
  return (
    <section class="card keys" aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
