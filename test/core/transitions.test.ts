import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TASK_STATES, Task } from '../../src/core/tasks/task.ts'
import type { TaskState } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import { Rig, cpus, fails, kindOf } from './rig.ts'

/** How to bring a task into each state, and where it may go from there. */
const LIVES: Record<TaskState, { by: TaskState[]; to: TaskState[] }> = {
  waiting: { by: [], to: ['ready', 'cancelled'] },
  ready: { by: ['ready'], to: ['running', 'parked', 'done', 'cancelled'] },
  parked: { by: ['ready', 'parked'], to: ['ready', 'cancelled'] },
  running: {
    by: ['ready', 'running'],
    to: ['done', 'ignored', 'failed', 'ready', 'waiting', 'blocked', 'stopping'],
  },
  blocked: {
    by: ['ready', 'running', 'blocked'],
    to: ['running', 'done', 'failed', 'ignored', 'ready', 'waiting', 'stopping'],
  },
  stopping: { by: ['ready', 'running', 'stopping'], to: ['cancelled'] },
  done: { by: ['ready', 'running', 'done'], to: [] },
  ignored: { by: ['ready', 'running', 'ignored'], to: [] },
  failed: { by: ['ready', 'running', 'failed'], to: [] },
  cancelled: { by: ['cancelled'], to: [] },
}

const taskIn = (state: TaskState): Task => {
  const { root } = new Rig().engine
  const task = new Task(7, { kind: kindOf('work'), group: root, demand: cpus(1) }, 0)
  for (const [i, one] of LIVES[state].by.entries()) task.move(one, i + 1)
  return task
}

for (const from of TASK_STATES) {
  for (const to of TASK_STATES) {
    const legal = LIVES[from].to.includes(to)
    test(`given a task that is ${from}, we should ${legal ? 'let it become' : 'refuse to make it'} ${to}`, () => {
      const task = taskIn(from)
      assert.equal(task.state, from)
      if (legal) {
        task.move(to, 99)
        assert.equal(task.state, to)
        assert.match(task.story(), new RegExp(`${to} at 99.000 ms$`))
      } else {
        const story = task.story()
        assert.throws(
          () => task.move(to, 99),
          fails('MR_INTERNAL', `work#7 cannot go from ${from} to ${to}`, story),
        )
        assert.equal(task.state, from)
        assert.equal(task.story(), story)
      }
    })
  }
}

/** Reports that come when they cannot be true. */
const REPORTS: Record<string, (rig: Rig, task: Task) => void> = {
  finished: (rig, task) => rig.engine.finished(task, 50, 1),
  failed: (rig, task) => rig.engine.failed(task, { name: 'Error', message: 'no' }, new Error('no'), 50),
  returned: (rig, task) => rig.engine.returned(task, lost('thread died'), 50),
  stopped: (rig, task) => rig.engine.stopped(task, 50),
}

const SITUATIONS: Record<string, (rig: Rig) => Task> = {
  'has not got its inputs': rig => {
    const x = rig.datum()
    rig.call('maker', [[x, 'out']])
    return rig.call('late', [[x, 'in']])
  },
  'has ended': rig => {
    const task = rig.call('ended')
    rig.go()
    rig.finish(task)
    rig.call('other', [], { demand: cpus(2, 10) })
    return task
  },
  'waits for another attempt': rig => {
    const task = rig.call('again', [], { retries: 1, demand: cpus(2, 10) })
    rig.go()
    rig.fail(task)
    return task
  },
}

for (const [situation, prepare] of Object.entries(SITUATIONS)) {
  for (const [report, send] of Object.entries(REPORTS)) {
    test(`given a task that ${situation}, we should refuse '${report}' with its story and lose nothing`, () => {
      const rig = new Rig()
      const task = prepare(rig)
      const before = snapshot(rig)
      const events = rig.events.length
      assert.throws(() => send(rig, task), fails('MR_INTERNAL', 'Its story: waiting at'))
      assert.deepEqual(snapshot(rig), before)
      assert.equal(rig.events.length, events)
      rig.drain()
      rig.assertIdle()
    })
  }
}

test(`given a task that runs, we should refuse 'stopped' while it was not told to stop`, () => {
  const rig = new Rig()
  const task = rig.call('busy')
  rig.go()
  const before = snapshot(rig)
  assert.throws(() => rig.engine.stopped(task, 5), fails('MR_INTERNAL', 'from running to cancelled'))
  assert.deepEqual(snapshot(rig), before)
})

const snapshot = ({ engine }: Rig) => ({
  lanes: engine.nodes.map(node => [node.freeLanes, node.freeMemory, node.lanes.map(lane => lane.load)]),
  ready: engine.readyCount,
  live: engine.root.live,
})

test('given a task whose start was not reported, we should take the time since it was told to start', () => {
  const rig = new Rig()
  const task = rig.call('quiet')
  rig.now = 100
  rig.go()
  rig.engine.finished(task, 108)
  assert.equal(task.implementation.mean, 108 - 101)
  assert.deepEqual(rig.story(task), ['submitted', 'ready', 'started', 'finished'])
})
