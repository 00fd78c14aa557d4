import assert from 'node:assert/strict'
import test from 'node:test'
import type { Task } from '../../src/core/tasks/task.ts'
import type { ReturnWhy } from '../../src/core/why.ts'
import { Decoder } from '../../src/model/encoding/decode.ts'
import { Encoder } from '../../src/model/encoding/encode.ts'
import { jobOf } from '../../src/node/job.ts'
import type { CommandResult } from '../../src/node/processes/command-process.ts'
import { SpawnerLost } from '../../src/node/processes/command-process.ts'
import { TaskModules } from '../../src/node/threads/modules.ts'
import { OutputWriter } from '../../src/node/threads/task-outputs.ts'
import { fakeNode } from './fake-node.ts'
import type { FakeProgram, FakeThread } from './fake-node.ts'

const ended: CommandResult = {
  cameBack: false,
  exitCode: 0,
  signal: null,
  printed: false,
  starved: false,
  beganAt: 5,
  took: 7,
  usage: null,
}

/** Until the node has told how the attempt ended. */
async function over(task: Task): Promise<void> {
  while (jobOf(task).attempt) await new Promise(resolve => setImmediate(resolve))
}
const first = <T>(list: readonly T[]): T => list[0] as T

const MISPLACED: ReturnWhy = { kind: 'cpu-is-free' }

test('a function goes to the thread of its lane, and a task taken back before it began is returned', () => {
  const { node, threads, log, start } = fakeNode()
  const task = start('function')
  assert.deepEqual(first<FakeThread>(threads).sent, [0])
  assert.equal(jobOf(task).attempt?.state, 'sent')
  assert.equal(node.isAtRest, false)
  node.recall([task], MISPLACED)
  assert.deepEqual(log, [`returned ${task.id}: ${MISPLACED.kind}`])
  assert.equal(jobOf(task).attempt, null)
  assert.equal(node.isAtRest, true)
})

test('a task that its thread has begun with is not taken back', () => {
  const { node, threads, log, start } = fakeNode()
  const task = start('function')
  first<FakeThread>(threads).taken.add(0)
  node.recall([task], MISPLACED)
  assert.deepEqual(log, [])
  assert.equal(jobOf(task).attempt?.state, 'sent')
})

test('the task that a thread died of fails, and tells what it called first', async () => {
  const { threads, log, givenUp, start } = fakeNode()
  const task = start('function')
  const thread = first<FakeThread>(threads)
  thread.taken.add(0)
  thread.events.ended('it crashed')
  await over(task)
  assert.deepEqual(log, ['died 0: it crashed', `failed ${task.id}: MR_THREAD_DIED`])
  assert.deepEqual(givenUp, [task])
})

/** The result of a function that threw, as its thread writes it. */
function throws(thread: FakeThread, task: Task): void {
  const encoder = new Encoder()
  new OutputWriter(encoder, new TaskModules()).writeError(task.id, new Error('thrown'), 1, 1, false)
  const hooks = { findClass: () => null, slot: () => undefined }
  thread.events.result(new Decoder(encoder.copy(), hooks), encoder.length, [], [])
}

test('a thread that is stopped for a task that ends first takes no blame to the next one', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { engine, node, threads, log, start } = fakeNode()
  const cancelled = start('function')
  const thread = first<FakeThread>(threads)
  thread.endsLater = true
  thread.taken.add(0)
  engine.cancelTask(cancelled, null, { kind: 'caller-ended', caller: 'outer#1' }, 5)
  for (const one of engine.decide(6)) if (one.type === 'stop') node.stop(one.task)
  t.mock.timers.tick(1000)
  assert.equal(thread.isKilled, true)
  // It was almost done, and is before the order.
  throws(thread, cancelled)
  await over(cancelled)
  engine.stopped(cancelled, 7)
  const next = start('function')
  thread.taken.add(1)
  thread.events.ended(cancelled.reason)
  await over(next)
  assert.deepEqual(log.slice(-2), [`died 0: ${cancelled.reason}`, `returned ${next.id}: lost`])
})

test('a task that is cancelled while it comes back from a lost machine is stopped, at each moment of that', async () => {
  for (let moment = 0; ; moment++) {
    const { engine, node, threads, log, start } = fakeNode()
    const task = start('function')
    engine.blocked(task, 'it waits', 2)
    const thread = first<FakeThread>(threads)
    thread.isCutOff = true
    thread.events.ended('its machine was lost')
    for (let i = 0; i < moment; i++) await Promise.resolve()
    const isOver = log.length > 0
    // The node of a blocked task that is cancelled is known by its attempt only.
    assert.equal(jobOf(task).attempt === null, isOver)
    if (isOver) break
    engine.cancelTask(task, null, { kind: 'group', group: 'outer', how: 'cancelled' }, 5)
    const stops = engine.decide(6).filter(one => one.type === 'stop')
    assert.deepEqual(stops, [{ type: 'stop', task }])
    node.stop(task)
    await over(task)
    assert.deepEqual(log, [`returned ${task.id}: lost`])
    engine.returned(task, { kind: 'lost', what: 'its machine' }, 7)
    assert.equal(task.state, 'cancelled')
  }
})

test('a command is started as a program, and its end is told once', () => {
  const { programs, log, start } = fakeNode()
  const task = start('command')
  const program = first<FakeProgram>(programs)
  assert.deepEqual(program.request.argv, ['true'])
  program.end.ended(ended)
  assert.deepEqual(log.slice(-1), [`finished ${task.id} in 7`])
  assert.equal(jobOf(task).attempt, null)
})

test('a program that was lost with its spawner is returned once, and then it is to blame', async () => {
  const { engine, node, programs, log, start } = fakeNode()
  const task = start('command')
  first<FakeProgram>(programs).end.failed(new SpawnerLost())
  await over(task)
  assert.match(log.at(-1) ?? '', /^returned 1: /)
  engine.returned(task, { kind: 'lost', what: 'lost' }, 10)
  const again: Task[] = []
  for (const one of engine.decide(11)) if (one.type === 'start') again.push(one.task)
  assert.deepEqual(again, [task])
  node.start(task)
  ;(programs[1] as FakeProgram).end.failed(new SpawnerLost())
  await over(task)
  assert.equal(log.at(-1), `failed ${task.id}: MR_SPAWN`)
})

test('a program is stopped when its task is, and the node tells how it ended', async () => {
  const { engine, node, programs, log, start } = fakeNode()
  const task = start('command')
  engine.cancel(engine.root, { kind: 'group', group: 'outer', how: 'cancelled' }, 5)
  for (const one of engine.decide(6)) if (one.type === 'stop') node.stop(one.task)
  const program = first<FakeProgram>(programs)
  assert.equal(program.isStopped, true)
  program.end.ended({ ...ended, exitCode: null, signal: 'SIGTERM' })
  await over(task)
  assert.match(log.at(-1) ?? '', new RegExp(`^failed ${task.id}: MR_EXIT_CODE`))
})
