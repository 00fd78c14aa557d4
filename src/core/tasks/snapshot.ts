import type { RunEvent } from '../events.ts'
import type { Demand } from './demand.ts'
import { members } from './group.ts'
import type { Group } from './group.ts'
import { startedEvent, tellSubmitted } from './submission.ts'
import type { Kind, Task } from './task.ts'

/**
 * The events that lead to the state of all tasks that have not ended, for an observer that joins late. It has no events of
 * tasks that have ended.
 */
export function snapshotOf(root: Group, cpusOf: (task: Task) => number): RunEvent[] {
  const events: RunEvent[] = []
  const tell = (event: RunEvent): void => void events.push(event)
  const kinds = new Set<Kind>()
  const told = new Set<Demand>()
  for (const task of [...members(root)].sort((a, b) => a.id - b.id)) {
    const { kind, state, since, submittedAt, startedAt } = task
    if (!kinds.has(kind)) {
      kinds.add(kind)
      const { id, name, form, module } = kind
      tell({ type: 'kind-defined', at: submittedAt, kind: id, name, form, module })
    }
    tellSubmitted(tell, task, told, submittedAt)
    if (state === 'waiting') continue
    const hasBegun = startedAt >= 0
    tell({ type: 'ready', at: hasBegun ? startedAt : since, task: task.id })
    if (hasBegun) tell(startedEvent(task, cpusOf(task), startedAt))
    if (state === 'blocked') tell({ type: 'blocked', at: since, task: task.id, reason: 'it waits' })
  }
  return events
}
