import assert from 'node:assert/strict'
import test from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Engine } from '../../src/core/engine.ts'
import type { Instruction } from '../../src/core/engine.ts'
import { fifo } from '../../src/core/schedule/policy.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import type { AgentEvents } from '../../src/node/local-node.ts'
import type { TaskNode } from '../../src/node/node.ts'
import type { CommandResult } from '../../src/node/processes/command-process.ts'
import { Looks } from '../../src/core/tasks/looks.ts'
import { Loop } from '../../src/runtime/loop.ts'
import { Runtime } from '../../src/runtime/runtime.ts'
import { fakeDefinition, fakePorts } from '../node/fake-node.ts'

const ended: CommandResult = {
  cameBack: false,
  exitCode: 0,
  signal: null,
  printed: false,
  starved: false,
  beganAt: 0,
  took: 1,
  usage: null,
}

/** A runtime whose nodes have threads and programs that are fakes. */
function fakeRuntime(names: readonly string[]) {
  const events: RunEvent[] = []
  const agents: AgentEvents[] = []
  const fakes = names.map(() => fakePorts())
  const runtime = new Runtime({
    id: 'parts',
    nodes: names.map((name, i) => ({
      description: { name, cpus: 1, memory: 0, tags: [] },
      ports: {
        ...(fakes[i] as (typeof fakes)[number]).ports,
        attach: (agent: AgentEvents) => void agents.push(agent),
      },
    })),
    mayGrow: false,
    policy: fifo,
    io: {},
    logs: null,
    bind: { mode: 'off', hyperThreads: true },
    stepTimes: 'off',
    observer: event => void events.push(event),
    entry: null,
  })
  const types = (): string[] => events.map(({ type }) => type)
  return { runtime, fakes, agents, events, types }
}

const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

test('a runtime starts what is called on nodes that are fakes, and hears how it ended', async () => {
  const { runtime, fakes, types } = fakeRuntime(['a', 'b'])
  const definition = fakeDefinition('command')
  const futures = [runtime.call(definition, []), runtime.call(definition, [])]
  runtime.decide()
  assert.deepEqual(
    fakes.map(({ programs }) => programs.map(({ request }) => request.argv)),
    [[['true']], [['true']]],
  )
  for (const { programs } of fakes) programs[0]?.end.ended(ended)
  await runtime.waitOn(futures)
  assert.equal(types().filter(type => type === 'finished').length, 2)
  await runtime.end()
})

test('the tasks of a node that is lost begin again on another one', async () => {
  const { runtime, fakes, agents, events } = fakeRuntime(['a', 'b'])
  const [a, b] = fakes
  runtime.call(fakeDefinition('function'), [])
  runtime.decide()
  assert.equal(a?.threads.length, 1)
  assert.equal(b?.threads.length, 0)
  const thread = a.threads[0]
  Object.assign(thread as object, { isCutOff: true })
  thread?.events.ended('the line was cut')
  agents[0]?.gone('the line was cut', true)
  while (b.threads.length === 0) await turn()
  assert(events.some(event => event.type === 'returned' && event.why === 'lost'))
  assert(events.some(event => event.type === 'note' && /node a was lost/.test(event.text)))
  await runtime.end()
})

test('the loop asks again until there is nothing more to do, and gives each node its own tasks back', () => {
  const { nodes, ...engine } = new Engine({ nodes: [{ name: 'a', cpus: 1, memory: 0, tags: [] }] })
  assert.equal(nodes.length, 1)
  const log: string[] = []
  const node = (name: string): TaskNode =>
    ({
      isAtRest: true,
      start: ({ id }: Task) => void log.push(`${name} starts ${id}`),
      recall: (tasks: readonly Task[]) =>
        void log.push(`${name} recalls ${tasks.map(({ id }) => id).join(' ')}`),
      flush: () => void log.push(`${name} flushes`),
    }) as unknown as TaskNode
  const task = (id: number, at: number): Task => ({ id, node: at }) as unknown as Task
  const rounds: Instruction[][] = [
    [{ type: 'start', task: task(1, 0) }],
    [{ type: 'recall', tasks: [task(2, 0), task(3, 1), task(4, 1)], why: { kind: 'cpu-is-free' } }],
  ]
  const all = [node('a'), node('b')]
  const loop: Loop = new Loop({
    engine: {
      root: engine.root,
      io: engine.io,
      looks: new Looks(),
      control: engine.control,
      readyCount: 0,
      taskCount: 0,
      decide: () => {
        // What happens while instructions are carried out is looked at in the next round.
        loop.decide()
        return rounds.shift() ?? []
      },
    },
    nodes: { all, of: ({ node: at }) => all[at] as TaskNode },
    files: {
      discard: () => undefined,
      devices: { any: false, sample: () => undefined, look: () => undefined, move: () => undefined },
    },
    largeValues: { dropped: () => undefined },
    nested: { resume: () => undefined, cancelCalled: () => undefined },
    channels: { any: false, isAwaited: false, look: () => false },
    waits: { any: false, wake: () => undefined },
    watchdog: { start: () => undefined },
    now: () => 0,
    keeper: () => null,
  })
  loop.decide()
  assert.deepEqual(log, ['a starts 1', 'a recalls 2', 'b recalls 3 4', 'a flushes', 'b flushes'])
  assert(loop.isAtRest)
})
