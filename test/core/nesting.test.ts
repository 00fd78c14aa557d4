import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AccessMode, Datum } from '../../src/core/data/datum.ts'
import { source } from '../../src/core/data/datum.ts'
import type { Access } from '../../src/core/data/datum.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { Rig, fails } from './rig.ts'
import type { Uses } from './rig.ts'
import { countSteps } from './steps.ts'

/** A rig in which `caller` runs and uses its data so. */
function nested(uses: (rig: Rig) => Uses): { rig: Rig; caller: Task; data: Datum[] } {
  const rig = new Rig({ cpus: 4 })
  const list = uses(rig)
  const caller = rig.call('caller', list)
  assert.deepEqual(rig.go(), [caller])
  return { rig, caller, data: list.map(([datum]) => datum) }
}

const DIRECT: { inPlace: boolean; caller: AccessMode; child: AccessMode; cycle: boolean }[] = [
  { inPlace: false, caller: 'out', child: 'in', cycle: true },
  { inPlace: false, caller: 'inout', child: 'in', cycle: true },
  { inPlace: false, caller: 'inout', child: 'inout', cycle: true },
  { inPlace: false, caller: 'inout', child: 'concurrent', cycle: true },
  { inPlace: false, caller: 'inout', child: 'out', cycle: false },
  { inPlace: false, caller: 'in', child: 'in', cycle: false },
  { inPlace: false, caller: 'in', child: 'inout', cycle: false },
  { inPlace: false, caller: 'concurrent', child: 'concurrent', cycle: false },
  { inPlace: false, caller: 'concurrent', child: 'in', cycle: true },
  { inPlace: false, caller: 'concurrent', child: 'commutative', cycle: true },
  { inPlace: false, caller: 'commutative', child: 'commutative', cycle: true },
  { inPlace: false, caller: 'commutative', child: 'in', cycle: true },
  { inPlace: false, caller: 'commutative', child: 'out', cycle: false },
  { inPlace: true, caller: 'in', child: 'in', cycle: false },
  { inPlace: true, caller: 'in', child: 'inout', cycle: true },
  { inPlace: true, caller: 'in', child: 'out', cycle: true },
  { inPlace: true, caller: 'in', child: 'concurrent', cycle: true },
  { inPlace: true, caller: 'inout', child: 'in', cycle: true },
  { inPlace: true, caller: 'concurrent', child: 'concurrent', cycle: false },
  { inPlace: true, caller: 'commutative', child: 'commutative', cycle: true },
]
for (const { inPlace, caller: mine, child: its, cycle } of DIRECT) {
  const what = inPlace ? 'memory in place' : 'a datum'
  const should = cycle ? 'refuse' : 'run'
  test(`given a caller with ${what} as ${mine}, we should ${should} a task inside that has it as ${its}`, () => {
    const { rig, caller, data } = nested(one => [[one.datum(inPlace), mine]])
    const call = (): Task => rig.call('child', [[data[0] as Datum, its]], { parent: caller })
    if (cycle) {
      const live = rig.engine.root.live
      assert.throws(
        call,
        fails('MR_NESTED_CYCLE', 'child was called by caller#1 and would wait for caller#1'),
      )
      assert.equal(rig.engine.root.live, live)
    } else {
      const child = call()
      rig.engine.blocked(caller, 'child', ++rig.now)
      assert.deepEqual(rig.go(), [child])
      rig.finish(child)
      rig.engine.unblocked(caller)
      assert.deepEqual(rig.go(), [caller])
      rig.finish(caller)
      rig.assertIdle()
    }
  })
}

test('given a task inside that needs what others make from the output of its caller, we should refuse it', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'out']])
  const [x, y, z] = [data[0] as Datum, rig.datum(), rig.datum()]
  rig.call('middle', [
    [x, 'in'],
    [y, 'out'],
  ])
  rig.call('next', [
    [y, 'in'],
    [z, 'out'],
  ])
  assert.throws(
    () => rig.call('child', [[z, 'in']], { parent: caller }),
    fails('MR_NESTED_CYCLE', 'would wait for next#3, which waits for middle#2, which waits for caller#1'),
  )
})

test('given a team whose member needs the output of the caller, we should refuse a task inside that reads it', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'out']])
  const log = rig.datum()
  rig.call('add', [
    [data[0] as Datum, 'in'],
    [log, 'concurrent'],
  ])
  assert.throws(
    () => rig.call('child', [[log, 'in']], { parent: caller }),
    fails('MR_NESTED_CYCLE', 'add#2, which waits for caller#1'),
  )
  assert.equal(rig.call('fine', [[log, 'concurrent']], { parent: caller }).state, 'ready')
})

test('given a COMMUTATIVE datum held by the caller, we should refuse a task inside that waits for one that needs it', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'commutative']])
  const y = rig.datum()
  rig.call('parked', [
    [data[0] as Datum, 'commutative'],
    [y, 'out'],
  ])
  assert.throws(
    () => rig.call('child', [[y, 'in']], { parent: caller }),
    fails('MR_NESTED_CYCLE', 'parked#2, which waits for caller#1'),
  )
})

test('given memory in place that is read by a task which waits for the caller, we should refuse a writer inside', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'out']])
  const memory = rig.datum(true)
  rig.call('reader', [
    [data[0] as Datum, 'in'],
    [memory, 'in'],
  ])
  assert.throws(
    () => rig.call('child', [[memory, 'inout']], { parent: caller }),
    fails('MR_NESTED_CYCLE', 'reader#2, which waits for caller#1'),
  )
  assert.equal(rig.call('fine', [[memory, 'in']], { parent: caller }).state, 'ready')
})

test('given two callers whose calls need the output of the other, we should refuse the second call', () => {
  const rig = new Rig({ cpus: 4 })
  const [x, y] = [rig.datum(), rig.datum()]
  const left = rig.call('left', [[x, 'out']])
  const right = rig.call('right', [[y, 'out']])
  rig.go()
  rig.call('inLeft', [[y, 'in']], { parent: left })
  assert.throws(
    () => rig.call('inRight', [[x, 'in']], { parent: right }),
    fails('MR_NESTED_CYCLE', 'left#1, which waits for inLeft#3, which waits for right#2'),
  )
})

test('given tasks that call tasks that call tasks, we should refuse what needs the outermost', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const outer = rig.call('outer', [[x, 'out']])
  rig.go()
  const middle = rig.call('middle', [], { parent: outer })
  rig.go()
  assert.throws(
    () => rig.call('inner', [[x, 'in']], { parent: middle }),
    fails('MR_NESTED_CYCLE', 'inner was called by middle#2 and would wait for outer#1'),
  )
})

test('given a chain of calls inside one task, we should check each without walking the chain', () => {
  const { rig, caller } = nested(() => [])
  rig.engine.observer = null
  const x = rig.datum()
  const calls = (count: number): void => {
    for (let i = 0; i < count; i++) rig.call('link', [[x, 'inout']], { parent: caller })
  }
  const first = countSteps(() => calls(1000))
  calls(8000)
  const last = countSteps(() => calls(1000))
  assert(last <= 1.02 * first, `${last} steps for the last thousand, ${first} for the first`)
})

test('given a chain of thousands of tasks before it, we should refuse a task inside without running out of stack', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'out']])
  rig.engine.observer = null
  for (let i = 0; i < 50_000; i++) rig.call('link', [[data[0] as Datum, 'inout']])
  assert.throws(
    () => rig.call('child', [[data[0] as Datum, 'in']], { parent: caller }),
    fails('MR_NESTED_CYCLE'),
  )
})

test('given a task inside that joins the team of its caller, it should start from what the team has made', () => {
  const { rig, caller, data } = nested(one => [[one.datum(), 'concurrent']])
  const child = rig.call('child', [[data[0] as Datum, 'concurrent']], { parent: caller })
  assert.equal(source(child.accesses[0] as Access)?.value, 'initial')
  assert.equal(child.accesses[0]?.write, caller.accesses[0]?.write)
})
