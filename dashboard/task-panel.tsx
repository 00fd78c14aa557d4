import { useEffect, useRef, useState } from 'preact/hooks'
import type { TaskFacts, VersionFacts } from '../src/report/dashboard/protocol.ts'
import { formatBytes, formatDuration } from '../src/report/format.ts'
import { STATE_WORDS } from './colours.ts'
import { TaskControls } from './control.tsx'
import { StateMark, TaskLink } from './parts.tsx'
import { useStore } from './store.ts'

/** All about one task: its story, why it waited, what it read, made and printed. */
export function TaskPanel({ id, onClose }: { id: number; onClose: () => void }): preact.JSX.Element {
  const { source } = useStore()
  const [facts, setFacts] = useState<TaskFacts | null | undefined>(undefined)
  const heading = useRef<HTMLHeadingElement>(null)
  const isOver = facts ? ['done', 'failed', 'ignored', 'cancelled'].includes(facts.state) : false
  useEffect(() => {
    let isLate = false
    const load = (): void => {
      source.task(id).then(
        found => (isLate ? undefined : setFacts(found)),
        () => (isLate ? undefined : setFacts(null)),
      )
    }
    load()
    if (isOver && facts?.task === id) return
    const timer = source.isLive ? setInterval(load, 2000) : 0
    return () => {
      isLate = true
      clearInterval(timer)
    }
  }, [id, isOver])
  useEffect(() => heading.current?.focus(), [id])
  const ready = facts?.task === id ? facts : null
  return (
    <aside class="panel" aria-label="Task">
      <div class="heading">
        <h2 ref={heading} tabIndex={-1}>
          {ready ? <StateMark state={ready.state} /> : null} {ready?.name ?? `task ${id}`}
        </h2>
        <button type="button" class="plain" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          ✕
        </button>
      </div>
      {facts === null ? <p class="empty">This run has no task {id}.</p> : null}
      {ready ? <Facts facts={ready} /> : null}
    </aside>
  )
}

/** Arguments by the million would be a large journal. */
const NOT_TOLD = 'kept for runs that are started with --dashboard'

const waitedText = (forInputs: string | null, forPlace: string | null): string | null =>
  forInputs === null
    ? null
    : `${forInputs} for inputs${forPlace === null ? '' : `, then ${forPlace} for a CPU or device`}`

function Facts({ facts }: { facts: TaskFacts }): preact.JSX.Element {
  const { submittedAt, readyAt, startedAt, endedAt } = facts
  const span = (from: number | null, to: number | null): string | null =>
    from === null || to === null ? null : formatDuration(Math.max(0, to - from))
  const { source } = useStore()
  const rows: [string, string | null][] = [
    ['State', STATE_WORDS[facts.state] + (facts.attempt > 1 ? `, attempt ${facts.attempt}` : '')],
    ['Label', facts.label || null],
    ['Arguments', facts.arguments ?? (source.isLive ? NOT_TOLD : null)],
    ['Waits', facts.waits],
    ['Ran', span(startedAt, endedAt)],
    ['Waited', waitedText(span(submittedAt, readyAt), span(readyAt, startedAt))],
    ['Where', facts.place],
    ['Device', facts.device],
    ['Asks for', facts.demand],
    ['Priority', facts.priority === 0 ? null : String(facts.priority)],
    ['Group', facts.group],
    ['Defined in', facts.module || null],
  ]
  return (
    <div class="facts">
      <dl>
        {rows.map(([label, value]) =>
          value === null ? null : (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
        {facts.parent === null ? null : (
          <div>
            <dt>Called by</dt>
            <dd>
              <TaskLink {...facts.parent} />
            </dd>
          </div>
        )}
      </dl>
      <TaskControls key={facts.task} facts={facts} />
      <h3>Story</h3>
      <ol class="story">
        {facts.story.map((line, i) => (
          <li key={i} class={line.startsWith('  ') ? 'more' : ''}>
            {line.trim()}
          </li>
        ))}
      </ol>
      <Versions title="Inputs" versions={facts.inputs} which="maker" />
      <Versions title="Outputs" versions={facts.outputs} which="readers" />
      {facts.logs.map(({ attempt, text, isCut }) => (
        <div key={attempt}>
          <h3>
            Output{facts.logs.length > 1 ? ` of attempt ${attempt}` : ''}
            {isCut ? ', its end' : ''}
          </h3>
          <pre tabIndex={0}>{text}</pre>
        </div>
      ))}
    </div>
  )
}

function Versions({
  title,
  versions,
  which,
}: {
  title: string
  versions: VersionFacts[]
  which: 'maker' | 'readers'
}): preact.JSX.Element | null {
  if (versions.length === 0) return null
  return (
    <div>
      <h3>{title}</h3>
      <ul class="versions">
        {versions.map(({ version, name, bytes, maker, readers }) => (
          <li key={version}>
            <span class="name">{name}</span>
            {bytes > 0 ? <small> {formatBytes(bytes)}</small> : null}
            {which === 'maker' && maker !== null ? (
              <small>
                {' from '}
                <TaskLink {...maker} />
              </small>
            ) : null}
            {which === 'readers' && readers.length > 0 ? (
              <small>
                {' read by '}
                {readers.slice(0, 4).map(reader => (
                  <span key={reader.task}>
                    <TaskLink {...reader} />{' '}
                  </span>
                ))}
                {readers.length > 4 ? '…' : ''}
              </small>
            ) : null}
          </li>
        ))}
      </ul>
    </div>
  )
}
