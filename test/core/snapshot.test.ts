import assert from 'node:assert/strict'
import test from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Statistics } from '../../src/report/statistics/statistics.ts'
import { Rig, cpus } from './rig.ts'

/** How many tasks are in which state, as a report counts them. */
function counts(events: readonly RunEvent[]): number[] {
  const statistics = new Statistics()
  for (const event of events) statistics.observe(event)
  const { waiting, ready, running, blocked } = statistics.total
  return [waiting, ready, running, blocked]
}

test('a snapshot leads to the tasks that have not ended, in the states that they are in', () => {
  const all: RunEvent[] = []
  const rig = new Rig({ cpus: 2 })
  rig.engine.observer = event => void all.push(event)
  const x = rig.datum()
  rig.drain()
  const ended = rig.call('ended')
  rig.drain()
  const running = rig.call('running', [[x, 'out']])
  const blocked = rig.call('blocked')
  rig.go()
  rig.engine.started(running, ++rig.now)
  rig.engine.blocked(blocked, 'it waits', ++rig.now)
  rig.go()
  const waiting = rig.call('waiting', [[x, 'in']])
  const large = rig.call('large', [], { demand: cpus(2) })
  rig.go()
  const snapshot = rig.engine.snapshot()
  const told = snapshot.flatMap(event => (event.type === 'submitted' ? [event.task] : []))
  assert.deepEqual(
    told,
    [running, blocked, waiting, large].map(({ id }) => id),
  )
  assert(!told.includes(ended.id))
  assert.deepEqual(counts(snapshot), counts(all))
  assert.deepEqual(counts(snapshot), [1, 1, 1, 1])
})
