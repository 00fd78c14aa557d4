import type { ComponentChildren } from 'preact'
import type { TaskState } from '../src/report/dashboard/protocol.ts'
import { STATE_SHAPES, STATE_WORDS } from './colours.ts'
import { goTo } from './hash.ts'
import { useConnection } from './store.ts'

/** A link that opens a task. */
export function TaskLink({ task, name }: { task: number; name: string }): preact.JSX.Element {
  return (
    <button type="button" class="link" onClick={() => goTo({ task })}>
      {name}
    </button>
  )
}

export function StateMark({ state }: { state: TaskState }): preact.JSX.Element {
  return (
    <span class={`shape ${state}`} title={STATE_WORDS[state]}>
      <span aria-hidden="true">{STATE_SHAPES[state]}</span>
      <span class="sr">{STATE_WORDS[state]}</span>
    </span>
  )
}

export function Card({
  title,
  aside,
  children,
  class: extra = '',
}: {
  title: string
  aside?: ComponentChildren
  children: ComponentChildren
  class?: string
}): preact.JSX.Element {
  return (
    <section class={`card ${extra}`}>
      <div class="heading">
        <h2>{title}</h2>
        {aside === undefined ? null : <span class="aside">{aside}</span>}
      </div>
      {children}
    </section>
  )
}

/** What a view says that has nothing to show: what would fill it. */
export function Empty({ children }: { children: ComponentChildren }): preact.JSX.Element {
  return <p class="empty">{children}</p>
}

export function Loading(): preact.JSX.Element {
  if (useConnection() !== 'ended') return <p class="empty">Loading …</p>
  return <Empty>The run has ended, and its page with it. What this view shows was not loaded before.</Empty>
}
