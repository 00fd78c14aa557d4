import assert from 'node:assert/strict'
import { test } from 'node:test'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { nodesOf } from '../../src/core/schedule/machine.ts'
import type { Lane, Node } from '../../src/core/schedule/machine.ts'
import type { Task } from '../../src/core/tasks/task.ts'

const DEMAND = demandOf(1, 0, [])

const short = (charge = 0.05): Task => ({ charge, kind: { form: 'function' }, lane: 0 }) as unknown as Task

function busyNode(cpus: number): Node {
  const [node] = nodesOf([{ name: 'a', cpus, memory: 1, tags: [] }]) as [Node]
  for (let i = 0; i < cpus; i++) {
    const task = short()
    task.lane = node.occupy(task, DEMAND, null).index
  }
  return node
}

function queue(node: Node): Lane | null {
  const lane = node.shallowLane('function', 0.05, 10_000, false)
  if (!lane) return null
  const task = short()
  task.lane = lane.index
  node.push(task, lane)
  return lane
}

test('short tasks spread evenly over the lanes, until all hold enough', () => {
  const node = busyNode(5)
  let count = 0
  while (queue(node)) {
    count++
    const sizes = node.lanes.map(lane => lane.queue.size)
    assert.ok(Math.max(...sizes) - Math.min(...sizes) <= 1, String(sizes))
  }
  assert.ok(count > 50)
})

test('a lane that has less to do than others gets the next short tasks', () => {
  const node = busyNode(4)
  while (queue(node)) continue
  const lane = node.lanes[2] as Lane
  for (let i = 0; i < 20; i++) node.release(lane.queue.peek() as Task, DEMAND, i)
  for (let i = 0; i < 19; i++) assert.equal(queue(node), lane)
})
