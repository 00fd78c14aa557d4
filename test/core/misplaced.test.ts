import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '../../src/core/schedule/machine.ts'
import { starved } from '../../src/core/schedule/ready-queue.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { Rig, cpus } from './rig.ts'

/** Five tasks of 5 ms on each of two lanes; more are ready. */
function deep(): {
  rig: Rig
  node: Node
  queue: (lane: number) => Task[]
  move: () => Task[]
  end: () => void
} {
  const rig = new Rig({ cpus: 2 })
  const first = rig.call('brief')
  rig.go()
  rig.finish(first, 5)
  for (let i = 0; i < 26; i++) rig.call('brief')
  rig.go()
  const node = rig.engine.nodes[0] as Node
  const queue = (lane: number): Task[] => [...(node.lanes[lane]?.queue ?? [])]
  const move = (): Task[] => {
    const moved: Task[] = []
    for (const one of rig.engine.decide((rig.now += 10))) {
      assert(one.type === 'recall', `${one.type} is said`)
      for (const task of one.tasks) rig.engine.returned(task, one.why, rig.now)
      moved.push(...one.tasks)
    }
    return moved
  }
  const end = (): void => {
    rig.go()
    for (let task = queue(0)[0] ?? queue(1)[0]; task; task = queue(0)[0] ?? queue(1)[0]) {
      rig.finish(task, 5)
      rig.go()
    }
    rig.assertIdle()
  }
  assert.deepEqual([queue(0).length, queue(1).length], [5, 5])
  return { rig, node, queue, move, end }
}

test('given tasks that wait on a lane, and no lane that is idle, we should leave them there', () => {
  const { move, end } = deep()
  assert.deepEqual(move(), [])
  end()
})

test('given a task that takes next to no time, we should have it wait behind longer ones, and not all behind it', () => {
  const rig = new Rig({ cpus: 2 })
  for (const [name, took] of [
    ['brief', 5],
    ['quick', 0.1],
  ] as const) {
    const first = rig.call(name)
    rig.go()
    rig.finish(first, took)
  }
  for (let i = 0; i < 20; i++) rig.call(i === 4 ? 'quick' : 'brief')
  const sent = rig.go()
  assert(sent.length > 6, `${sent.length} are sent`)
  for (const task of sent) rig.finish(task, 5)
  rig.drain(5)
  rig.assertIdle()
})

test('given a lane that is idle, we should share what waits on the other', () => {
  const { rig, node, queue, move, end } = deep()
  while (rig.engine.readyCount > 0 || node.freeLanes === 0) {
    rig.finish(queue(1)[0] as Task, 5)
    rig.go()
  }
  const before = queue(0)
  assert.equal(before.length, 5)
  assert.deepEqual(move(), before.slice(3).reverse(), 'half of what has not begun')
  rig.go()
  assert.deepEqual([queue(0), queue(1)], [before.slice(0, 3), before.slice(3)])
  assert.deepEqual(move(), [])
  end()
})

test('given a task for all CPUs that was overtaken too often, we should have it wait for what runs only', () => {
  const { rig, queue, move, end } = deep()
  const wide = rig.call('wide', [], { demand: cpus(2), priority: 1 })
  for (let i = 0; i < 40; i++) rig.call('brief')
  while (!starved(wide)) {
    rig.finish(queue(1)[0] as Task, 5)
    rig.go()
    assert.deepEqual(move(), [])
  }
  while (queue(1).length > 0) {
    rig.finish(queue(1)[0] as Task, 5)
    assert.deepEqual(rig.go(), [])
  }
  assert(queue(0).length > 1)
  while (move().length > 0) assert.deepEqual(rig.go(), [])
  assert.equal(queue(0).length, 1)
  rig.finish(queue(0)[0] as Task, 5)
  assert.deepEqual(rig.go(), [wide])
  rig.finish(wide)
  end()
})

test('given tasks of higher priority, we should have few others wait on lanes, so that they need not wait behind these', () => {
  const { rig, queue, end } = deep()
  rig.call('brief', [], { priority: 1 })
  while (rig.engine.readyCount > 4) {
    rig.finish(queue(0)[0] as Task, 5)
    rig.finish(queue(1)[0] as Task, 5)
    rig.go()
  }
  assert.deepEqual([queue(0).length, queue(1).length], [2, 2])
  end()
})

test('given a blocked task that could go on, we should not have it wait for more than what runs on its lane', () => {
  const { rig, queue, move, end } = deep()
  const blocked = queue(0)[0] as Task
  rig.engine.blocked(blocked, 'waits', rig.now)
  rig.engine.unblocked(blocked)
  const [head, ...behind] = queue(0)
  assert.deepEqual(move(), behind.reverse())
  rig.go()
  assert.deepEqual(queue(0), [head])
  rig.finish(head as Task, 5)
  assert(rig.go().includes(blocked))
  end()
})

test('given a failure, we should take back what waits on lanes, and cancel it', () => {
  const { rig, queue, move } = deep()
  const [first, second] = [queue(0), queue(1)]
  rig.fail(first[0] as Task)
  const begun = first[1] as Task
  const moved = move()
  assert.deepEqual(new Set(moved), new Set([...first.slice(2), ...second.slice(1)]))
  for (const task of moved) assert.equal(task.state, 'cancelled')
  assert.deepEqual([begun.state, second[0]?.state], ['running', 'running'])
  assert.deepEqual(move(), [])
  for (const task of [begun, second[0] as Task]) rig.finish(task, 5)
  assert.deepEqual(rig.go(), [])
  rig.assertIdle()
})
