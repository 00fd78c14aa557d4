// Versions that may be read as they grow: who follows one starts with its producer and holds no CPU.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Datum, Version } from '../../src/core/data/datum.ts'
import { isFollower } from '../../src/core/data/growing.ts'
import type { Kind, Task } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import { Rig, kindOf } from './rig.ts'

const command = (name: string): Kind => ({ ...kindOf(name), form: 'command' })
const written = (task: Task): Version => task.accesses.find(({ write }) => write)?.write as Version

/** A command that reads some streams and writes one. */
function call(rig: Rig, name: string, reads: Datum[], writes: Datum, retries = 0): Task {
  const inputs = reads.map(datum => [datum, 'in'] as [Datum, 'in'])
  return rig.call(name, [...inputs, [writes, 'out', true]], { kind: command(name), retries })
}

test('given one CPU, we should run a whole chain at the same time', () => {
  const rig = new Rig({ cpus: 1 })
  const data = [rig.datum(), rig.datum(), rig.datum()] as const
  const a = call(rig, 'a', [], data[0])
  const b = call(rig, 'b', [data[0]], data[1])
  const c = call(rig, 'c', [data[1]], data[2])
  assert.deepEqual(rig.names(), ['a'])
  rig.engine.grows(written(a), ++rig.now)
  assert.deepEqual(rig.names(), ['b'])
  assert.equal(b.state, 'blocked')
  rig.engine.grows(written(b), ++rig.now)
  assert.deepEqual(rig.names(), ['c'])
  rig.finish(a)
  assert.deepEqual(rig.names(), ['b'], 'what it read is complete: it wants a CPU')
  assert.equal(b.state, 'running')
  assert.equal(c.state, 'blocked')
  rig.finish(b)
  assert.deepEqual(rig.names(), ['c'])
  rig.finish(c)
  rig.go()
  rig.assertIdle()
  assert.deepEqual(rig.story(b), ['submitted', 'ready', 'started', 'blocked', 'resumed', 'finished'])
})

test('given several nodes, we should follow on the node of the producer while it has a CPU, then where most are free', () => {
  const rig = new Rig({ nodes: [{ cpus: 2 }, { cpus: 1 }, { cpus: 3 }] })
  const data = [rig.datum(), rig.datum(), rig.datum(), rig.datum()] as const
  const a = call(rig, 'a', [], data[0])
  const b = call(rig, 'b', [data[0]], data[1])
  const [c, d] = [call(rig, 'c', [data[0]], data[2]), call(rig, 'd', [data[1]], data[3])]
  rig.go()
  const home = a.node
  const cpusOf = (node: number): number => rig.engine.nodes[node]?.cpus ?? 0
  rig.engine.grows(written(a), ++rig.now)
  rig.go()
  const others = [0, 1, 2].filter(node => node !== home).sort((x, y) => cpusOf(y) - cpusOf(x))
  assert.equal(cpusOf(home), 2)
  assert.deepEqual([b.node, c.node], [home, others[0]])
  rig.engine.grows(written(b), ++rig.now)
  rig.go()
  assert.equal(d.node, others[0], 'the last CPU of its producer is for its producer')
  for (const task of [a, b, c, d]) {
    rig.finish(task)
    rig.go()
  }
  rig.assertIdle()
})

test('given a function among the readers, we should let it wait for the commit', () => {
  const rig = new Rig({ cpus: 2 })
  const x = rig.datum()
  const a = call(rig, 'a', [], x)
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  rig.engine.grows(written(a), ++rig.now)
  assert.deepEqual(rig.names(), [])
  assert.equal(reader.state, 'waiting')
  rig.finish(a)
  assert.deepEqual(rig.names(), ['reader'])
})

test('given a producer that fails, we should stop its followers because of it', () => {
  const rig = new Rig({ cpus: 1 })
  const [x, y] = [rig.datum(), rig.datum()]
  const a = call(rig, 'a', [], x)
  const b = call(rig, 'b', [x], y)
  rig.go()
  rig.engine.grows(written(a), ++rig.now)
  rig.go()
  rig.fail(a)
  rig.go()
  assert.deepEqual(rig.stops(), [b])
  assert.equal(b.cause, a)
  rig.engine.stopped(b, ++rig.now)
  rig.assertIdle()
})

test('given a producer that is tried again, we should let its followers wait for the next attempt', () => {
  const rig = new Rig({ cpus: 1 })
  const [x, y] = [rig.datum(), rig.datum()]
  const a = call(rig, 'a', [], x, 1)
  const b = call(rig, 'b', [x], y)
  rig.go()
  rig.engine.grows(written(a), ++rig.now)
  rig.go()
  rig.fail(a)
  rig.engine.returned(b, lost('its input was void'), ++rig.now)
  assert.equal(b.state, 'waiting')
  assert.deepEqual(rig.names(), ['a'])
  rig.engine.grows(written(a), ++rig.now)
  assert.deepEqual(rig.names(), ['b'])
  rig.finish(b)
  rig.finish(a)
  rig.go()
  rig.assertIdle()
})

test('random graphs of streams: no task starts too early, no CPU is held twice, everything ends', () => {
  const plan = fc.record({
    cpus: fc.integer({ min: 1, max: 3 }),
    steps: fc.array(
      fc.record({
        reads: fc.array(fc.nat(7), { maxLength: 3 }),
        form: fc.constantFrom('command', 'command', 'function'),
        retries: fc.nat(2),
        flows: fc.boolean(),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    moves: fc.array(fc.nat(1000), { minLength: 20, maxLength: 80 }),
  })
  fc.assert(
    fc.property(plan, ({ cpus, steps, moves }) => {
      const rig = new Rig({ cpus })
      const data = steps.map(() => rig.datum())
      const tasks = steps.map(({ reads, form, retries, flows }, i) => {
        const inputs = [...new Set(reads.filter(one => one < i))].map(one => data[one] as Datum)
        if (form === 'command' && flows) return call(rig, `t${i}`, inputs, data[i] as Datum, retries)
        const uses = [...inputs.map(d => [d, 'in'] as [Datum, 'in']), [data[i], 'out'] as [Datum, 'out']]
        const kind = form === 'command' ? command(`t${i}`) : kindOf(`t${i}`)
        return rig.call(`t${i}`, uses, { kind, retries, onFailure: 'cancelSuccessors' })
      })
      const act = (choice: number): void => {
        const live = tasks.filter(task => task.state === 'running' || task.state === 'blocked')
        const task = live[choice % Math.max(1, live.length)]
        if (!task) return
        const { growth } = written(task)
        const what = Math.floor(choice / 10) % 5
        if (what <= 1 && growth) rig.engine.grows(written(task), ++rig.now)
        else if (what === 2) {
          // As the runtime does it: those who read from the attempt come back before anything else happens.
          const followers = [...(growth?.followers ?? [])]
          rig.fail(task)
          for (const one of followers)
            if (one.state === 'running' || one.state === 'blocked')
              rig.engine.returned(one, lost('void'), ++rig.now)
        } else if (!isFollower(task)) rig.finish(task)
      }
      const look = (): void => {
        for (const task of rig.go()) {
          for (const { read } of task.accesses) {
            assert.ok(!read || read.state === 'ready' || (read.growth?.open && task.kind.form === 'command'))
          }
        }
        for (const task of rig.stops()) if (task.state === 'stopping') rig.engine.stopped(task, ++rig.now)
        const held = tasks.filter(task => task.state === 'running').length
        assert.ok(held <= cpus, `${held} tasks hold ${cpus} CPUs`)
      }
      look()
      for (const move of moves) {
        act(move)
        look()
      }
      for (let i = 0; i < 200 && tasks.some(task => !task.ended); i++) {
        for (const task of tasks) {
          const isLive = task.state === 'running' || task.state === 'blocked'
          if (isLive && !isFollower(task)) rig.finish(task)
        }
        look()
      }
      assert.deepEqual(
        tasks.filter(task => !task.ended).map(task => task.story()),
        [],
      )
      rig.assertIdle()
    }),
    { numRuns: 300 },
  )
})
