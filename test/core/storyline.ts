import assert from 'node:assert/strict'
import type { RunEvent } from '../../src/core/events.ts'

type Phase = 'submitted' | 'ready' | 'started' | 'blocked' | 'ended'

interface Line {
  phase: Phase
  attempt: number
  at: number
  events: RunEvent[]
}

/** Which events may follow which, for one task. */
const NEXT: Record<Phase, Partial<Record<RunEvent['type'], Phase>>> = {
  submitted: { ready: 'ready', cancelled: 'ended' },
  // A task that queued on a lane may come back, or be cancelled, before it began.
  ready: { started: 'started', cancelled: 'ended', returned: 'ready', kept: 'ended' },
  started: {
    finished: 'ended',
    failed: 'ended',
    cancelled: 'ended',
    blocked: 'blocked',
    released: 'started',
    returned: 'ready',
  },
  blocked: {
    resumed: 'started',
    released: 'blocked',
    finished: 'ended',
    failed: 'ended',
    cancelled: 'ended',
    returned: 'ready',
  },
  ended: {},
}

/** Reads the events of a run and refuses what no task can live through. */
export class Storyline {
  readonly #lines = new Map<number, Line>()
  readonly committed = new Set<number>()

  add(event: RunEvent): void {
    if (event.type === 'committed') {
      assert(!this.committed.has(event.version), `version ${event.version} is committed twice`)
      this.committed.add(event.version)
      return
    }
    if (!('task' in event)) return
    if (event.type === 'submitted') {
      assert(!this.#lines.has(event.task), `task ${event.task} is submitted twice`)
      this.#lines.set(event.task, { phase: 'submitted', attempt: 1, at: event.at, events: [event] })
      return
    }
    const line = this.#lines.get(event.task)
    assert(line, `${event.type} of task ${event.task}, which was never submitted`)
    line.events.push(event)
    const told = (): string => line.events.map(one => `${one.type}@${one.at.toFixed(3)}`).join(' ')
    assert(event.at >= line.at, `time runs backwards: ${told()}`)
    line.at = event.at
    const next = NEXT[line.phase][event.type]
    assert(next, `${event.type} cannot follow: ${told()}`)
    line.phase = next
    if (event.type === 'started' || event.type === 'finished' || event.type === 'failed') {
      assert.equal(event.attempt, line.attempt, `wrong attempt: ${told()}`)
    }
    if (event.type === 'failed' && event.next === 'retry') {
      line.attempt++
      line.phase = 'ready'
    }
  }

  /** All tasks that have not come to an end. */
  open(): number[] {
    return [...this.#lines].filter(([, { phase }]) => phase !== 'ended').map(([task]) => task)
  }

  of(task: number): string[] {
    return (this.#lines.get(task)?.events ?? []).map(({ type }) => type)
  }
}
