import { MillraceError } from '../../core/errors.ts'
import type { RunEvent } from '../../core/events.ts'
import { nearest } from '../../general/nearest.ts'
import { formatCount } from '../format.ts'
import { tell, type TaskEvent } from './story-tell.ts'
import { StoryWorld } from './story-world.ts'

/**
 * What happened to one task, in sentences. A task is named by its id (`12`, `#12`, `align#12`) or by the
 * name of its kind; then it is the first of that kind that failed, else the first that has not ended, else
 * the first of all.
 */
export async function story(events: AsyncIterable<RunEvent>, task: number | string): Promise<string[]> {
  const wanted = parse(task)
  const world = new StoryWorld()
  const picker = wanted.id === null ? new PickByName(world, wanted.name) : new PickById(wanted.id)
  for await (const event of events) {
    world.observe(event)
    if (isTaskEvent(event)) picker.observe(event)
  }
  const picked = picker.pick()
  if (picked === null) throw unknownTask(String(task), wanted, world)
  const isMeant = world.isMeant(wanted.name, picked.events[0]!.task)
  if (wanted.name !== '' && !isMeant) throw unknownTask(String(task), wanted, world)
  return [...(picked.why ? [picked.why] : []), ...tell(picked.events, world)]
}

interface Wanted {
  id: number | null
  name: string
}

function parse(task: number | string): Wanted {
  if (typeof task === 'number') return { id: task, name: '' }
  const match = /^(.*?)#?(\d+)$/s.exec(task)
  const isId = match !== null && (match[1] === '' || task.includes('#'))
  return isId ? { id: Number(match[2]), name: match[1]! } : { id: null, name: task }
}

interface Picked {
  events: TaskEvent[]
  why?: string
}

class PickById {
  readonly #id: number
  readonly #events: TaskEvent[] = []

  constructor(id: number) {
    this.#id = id
  }

  observe(event: TaskEvent): void {
    if (event.task === this.#id) this.#events.push(event)
  }

  pick(): Picked | null {
    return this.#events.length === 0 ? null : { events: this.#events }
  }
}

/** Keeps the events of the tasks of one kind only while they are alive, and of the two that may be told. */
class PickByName {
  readonly #world: StoryWorld
  readonly #name: string
  readonly #alive = new Map<number, TaskEvent[]>()
  #first: TaskEvent[] | null = null
  #failed: TaskEvent[] | null = null
  #count = 0

  constructor(world: StoryWorld, name: string) {
    this.#world = world
    this.#name = name
  }

  observe(event: TaskEvent): void {
    if (event.type === 'submitted' && this.#world.isMeant(this.#name, event.task)) {
      const events: TaskEvent[] = []
      this.#alive.set(event.task, events)
      this.#first ??= events
      this.#count++
    }
    const events = this.#alive.get(event.task)
    if (!events) return
    events.push(event)
    const isFailed = event.type === 'failed' && event.next !== 'retry'
    if (isFailed) this.#failed ??= events
    const hasEnded = event.type === 'finished' || event.type === 'kept' || event.type === 'cancelled'
    if (isFailed || hasEnded) this.#alive.delete(event.task)
  }

  pick(): Picked | null {
    const unended: TaskEvent[] | undefined = this.#alive.values().next().value
    const events = this.#failed ?? unended ?? this.#first
    if (!events) return null
    if (this.#count === 1) return { events }
    const which = this.#failed ? 'first that failed' : unended ? 'first that has not ended' : 'first'
    const name = this.#world.nameOf(events[0]!.task)
    return {
      events,
      why: `${formatCount(this.#count)} tasks are called ${this.#name}; ${name} is the ${which}.`,
    }
  }
}

function isTaskEvent(event: RunEvent): event is TaskEvent {
  return 'task' in event
}

function unknownTask(asked: string, { id, name }: Wanted, world: StoryWorld): MillraceError {
  return new MillraceError('MR_JOURNAL', `this run has no task \`${asked}\``, {
    hint: unknownHint(id, name, world),
  })
}

function unknownHint(id: number | null, name: string, world: StoryWorld): string {
  if (id !== null && world.kindNameOf(id) !== null) return `Did you mean ${world.nameOf(id)}?`
  const near = name === '' ? null : nearest(name, world.kindNames())
  if (near !== null) return `Did you mean ${near}?`
  if (id !== null && world.taskCount > 0) return `Its tasks are numbered up to ${world.lastTask}.`
  const names = [...world.kindNames()].slice(0, 10)
  return names.length === 0 ? 'It has no tasks at all.' : `Its tasks are called ${names.join(', ')}.`
}
