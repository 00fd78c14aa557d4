import assert from 'node:assert/strict'
import test from 'node:test'
import type { Task } from '../../src/core/tasks/task.ts'
import type { ReturnWhy } from '../../src/core/why.ts'
import { jobOf } from '../../src/node/job.ts'
import type { CommandResult } from '../../src/node/processes/command-process.ts'
import { SpawnerLost } from '../../src/node/processes/command-process.ts'
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
