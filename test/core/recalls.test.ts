// Tasks that wait on a lane, and that the engine calls back from there.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Datum } from '../../src/core/data/datum.ts'
import type { Instruction } from '../../src/core/engine.ts'
import type { Lane, Node } from '../../src/core/schedule/machine.ts'
import type { Kind, Task } from '../../src/core/tasks/task.ts'
import { hadNotBegun, lost, returnText } from '../../src/core/why.ts'
import { Rig, kindOf } from './rig.ts'
import type { RigOptions, Uses } from './rig.ts'

interface Crowd {
  rig: Rig
  node: Node
  /** The lane on which most wait. */
  lane: Lane
  head: Task
  behind: Task[]
}

const recalls = (said: readonly Instruction[]): Task[] =>
  said.flatMap(one => (one.type === 'recall' ? one.tasks : []))

/** Short tasks of one kind on all lanes of a node. */
function crowd(form: Kind['form'], options: RigOptions = {}, uses: () => Uses = () => []): Crowd {
  const rig = new Rig(options)
  const spec = { kind: { ...kindOf('short'), form }, queues: true }
  const first = rig.call('short', [], spec)
  rig.go()
  rig.finish(first, 1 / 4)
  for (let i = 0; i < 40; i++) rig.call('short', uses(), { queues: true })
  rig.go()
  const lanes = rig.engine.nodes.flatMap(node => node.lanes.map(lane => ({ node, lane })))
  lanes.sort((a, b) => b.lane.queue.size - a.lane.queue.size)
  const [{ node, lane }] = lanes as [{ node: Node; lane: Lane }]
  const [head, ...behind] = lane.queue as Iterable<Task>
  assert(head && behind.length > 2)
  return { rig, node, lane, head, behind }
}

/** All tasks of the other lanes end, and nothing is ready. */
function idleOthers({ rig, lane }: Crowd): void {
  for (let task = next(); task; task = next()) {
    rig.finish(task, 1 / 4)
    for (const one of rig.engine.decide(rig.now)) if (one.type === 'recall') rig.engine.kept(one.tasks)
  }
  function next(): Task | undefined {
    const others = rig.engine.nodes.flatMap(({ lanes }) => lanes).filter(one => one !== lane)
    return others.map(one => one.queue.peek()).find(task => task !== undefined)
  }
}

const look = ({ rig, node, lane }: Crowd, after: number): Task[] => {
  const head = lane.queue.peek() as Task
  const now = Math.max(head.since, lane.lastEnd) + after
  rig.engine.laneSilent(node.index, lane.index, now)
  return recalls(
    rig.engine.decide(now).filter(one => one.type === 'recall' && one.why.kind === 'behind-long-task'),
  )
}

for (const [form, patience] of [
  ['function', 10],
  ['command', 20],
] as const) {
  test(`given a ${form} that takes longer than expected, and a free CPU, we should recall those behind it`, () => {
    const all = crowd(form)
    idleOthers(all)
    const behind = [...all.lane.queue].slice(1)
    assert(behind.length > 0)
    assert.deepEqual(look(all, patience - 1), [])
    const recalled = look(all, patience)
    assert.deepEqual(recalled, behind)
    for (const task of recalled) all.rig.engine.returned(task, lost('because'), all.rig.now + 30)
    all.rig.now += 30
    const again = all.rig.go()
    assert.deepEqual(new Set(again), new Set(recalled))
    assert(
      again.every(task => task.lane !== all.lane.index),
      'nothing waits behind the long one',
    )
    all.rig.finish(all.head, 100)
    for (const task of again) all.rig.finish(task, 1 / 4)
    all.rig.go()
    all.rig.assertIdle()
  })

  test(`given a ${form} that takes longer than expected where all CPUs are busy, we should wait longer`, () => {
    const all = crowd(form, { cpus: 1 })
    assert.deepEqual(look(all, 99), [])
    assert.deepEqual(look(all, 100), all.behind)
  })
}

test('given a lane that was idle for long, we should count from when its task began', () => {
  const all = crowd('command')
  assert.equal(all.lane.lastEnd < all.head.since, true)
  assert.equal(all.rig.engine.laneSilent(all.node.index, all.lane.index, all.head.since + 19), false)
  assert.equal(all.rig.engine.laneSilent(all.node.index, all.lane.index, all.head.since + 20), true)
})

test('given a lane without tasks, we should not call it silent', () => {
  const rig = new Rig()
  assert.equal(rig.engine.laneSilent(0, 0, 1e6), false)
  assert.equal(rig.engine.laneSilent(0, 99, 1e6), false)
  assert.equal(rig.engine.laneSilent(9, 0, 1e6), false)
})

/** Some tasks of 5 ms on the first of two lanes of each node, and nothing on the last one. */
function uneven(nodes: number, uses: () => Uses = () => []): Rig {
  const rig = new Rig({ cpus: 2, nodes: Array.from({ length: nodes }, () => ({})) })
  const first = rig.call('brief')
  rig.go()
  rig.finish(first, 5)
  for (let i = 0; i < 26 * nodes; i++) rig.call('brief', uses())
  rig.go()
  const free = (): Lane | undefined => rig.engine.nodes.at(-1)?.lanes[1]
  for (let task = free()?.queue.peek(); task; task = free()?.queue.peek()) {
    rig.finish(task, 5)
    // Only what is not a recall is carried out.
    rig.engine.decide(rig.now)
  }
  return rig
}

test('given a recall that was put off, we should say it again at once; else not so soon', () => {
  const rig = uneven(1)
  rig.now += 20
  const recalled = recalls(rig.engine.decide(rig.now))
  assert(recalled.length > 0)
  assert.deepEqual(recalls(rig.engine.decide(rig.now + 9)), [])
  rig.engine.kept(recalled)
  assert.deepEqual(recalls(rig.engine.decide(rig.now + 9)), recalled)
  assert.deepEqual(recalls(rig.engine.decide(rig.now + 9)), [])
  assert.deepEqual(recalls(rig.engine.decide(rig.now + 10)), recalled)
})

test('given several nodes, we should share out what waits on lanes of a node that has an idle one', () => {
  const rig = uneven(3)
  rig.now += 20
  const recalled = recalls(rig.engine.decide(rig.now))
  assert(recalled.length > 0)
  assert(recalled.every(task => task.node === 2))
})

test('given tasks with files, we should not recall them for an idle lane', () => {
  let file = 0
  const rig = uneven(1, () => [[new Datum(`/file-${++file}`), 'out']])
  rig.now += 20
  assert((rig.engine.nodes[0] as Node).freeLanes > 0)
  assert.deepEqual(recalls(rig.engine.decide(rig.now)), [])
})

for (const form of ['function', 'command'] as const) {
  test(`given a failure, we should recall each ${form} that waits on a lane and cancel it`, () => {
    const { rig, head, behind, lane } = crowd(form, { cpus: 1 })
    rig.fail(head)
    const recalled = recalls(rig.engine.decide(rig.now))
    assert.deepEqual(new Set(recalled), new Set(behind.slice(1)), 'the next one has begun')
    for (const task of recalled) rig.engine.returned(task, lost('because'), rig.now)
    for (const task of recalled) assert.equal(task.state, 'cancelled')
    rig.finish(lane.queue.peek() as Task, 1 / 4)
    rig.go()
    rig.assertIdle()
  })
}

test('given a task that cannot begin again, we should not retry it', () => {
  const rig = new Rig()
  const task = rig.call('task', [], { retries: 3 })
  rig.go()
  rig.fail(task)
  assert.deepEqual(rig.go(), [task])
  rig.engine.lastAttempt(task)
  assert.equal(rig.engine.afterFailure(task), 'fail')
  rig.fail(task)
  assert.equal(task.state, 'failed')
})

test('given a caller whose thread is ended by what it called, we should run it again twice', () => {
  const rig = new Rig()
  const caller = rig.call('caller')
  rig.go()
  rig.engine.blocked(caller, 'waits', ++rig.now)
  const called = rig.call('called', [], { parent: caller })
  const stranger = rig.call('stranger')
  assert.equal(rig.engine.afterLoss(caller, 'thread', stranger), 'again')
  assert.equal(rig.engine.afterLoss(caller, 'thread', called), 'again')
  assert.equal(rig.engine.afterLoss(caller, 'thread', called), 'again')
  assert.equal(rig.engine.afterLoss(caller, 'thread', called), 'called')
  assert.equal(called.kind.endsThreads, true)
  assert.equal(rig.engine.afterLoss(called, 'thread', called), 'itself')
  assert.equal(rig.engine.afterLoss(called, 'thread'), 'again')
})

test('given a command that is lost twice with the process that starts programs, we should blame it', () => {
  const rig = new Rig()
  const task = rig.call('task')
  rig.go()
  assert.equal(rig.engine.afterLoss(task, 'spawner'), 'again')
  assert.equal(rig.engine.afterLoss(task, 'spawner'), 'repeatedly')
})

test('given a recall, we should tell its kind beside the words, and know it in journals without the kind', () => {
  const rig = uneven(1)
  rig.now += 20
  const [recall] = rig.engine.decide(rig.now)
  assert(recall?.type === 'recall')
  assert.equal(recall.why.kind, 'cpu-is-free')
  rig.engine.returned(recall.tasks[0] as Task, recall.why, rig.now)
  const event = rig.events.findLast(one => one.type === 'returned')
  assert(event?.type === 'returned' && event.why === 'cpu-is-free' && hadNotBegun(event))
  assert.equal(hadNotBegun({ reason: returnText(recall.why) }), true)
  assert.equal(hadNotBegun({ reason: 'its thread died' }), false)
  assert.equal(hadNotBegun({ reason: 'its thread died', why: 'lost' }), false)
})

for (const form of ['function', 'command'] as const) {
  test(`given a ${form} of higher priority, we should call back what waits, and begin it after one task`, () => {
    const { rig, head, behind } = crowd(form, { cpus: 1 })
    const urgent = rig.call('urgent', [], { priority: 5, queues: true })
    const asked = rig.engine.decide(rig.now).filter(one => one.type === 'recall')
    assert.deepEqual(new Set(recalls(asked)), new Set(behind))
    assert.ok(
      asked.every(one => one.why.kind === 'higher-priority' && hadNotBegun({ reason: returnText(one.why) })),
    )
    for (const task of behind) rig.engine.returned(task, { kind: 'higher-priority' }, rig.now)
    rig.finish(head, 1 / 4)
    rig.go()
    assert.equal(rig.engine.nodes[0]?.lanes[0]?.queue.peek(), urgent)
  })
}

test('given tasks of one priority, we should call none back for another', () => {
  const { rig } = crowd('command', { cpus: 1 })
  rig.call('other', [], { queues: true })
  assert.deepEqual(recalls(rig.engine.decide(rig.now)), [])
})
