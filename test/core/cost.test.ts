import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Datum } from '../../src/core/data.ts'
import { Engine } from '../../src/core/engine.ts'
import { fifo, findPolicy } from '../../src/core/policy.ts'
import type { Policy } from '../../src/core/policy.ts'
import type { Task } from '../../src/core/task.ts'
import { cpus, kindOf } from './rig.ts'

type Shape = (engine: Engine, n: number) => void

const demand = cpus(1)

/** No task needs another. */
const flat: Shape = (engine, n) => {
  const kind = kindOf('flat')
  for (let i = 0; i < n; i++) {
    engine.submit({ kind, group: engine.root, demand }, [{ datum: new Datum(), mode: 'out' }], 0)
  }
}

/** One hundred chains side by side. */
const chains: Shape = (engine, n) => {
  const kind = kindOf('link')
  const data = Array.from({ length: 100 }, () => new Datum())
  for (let i = 0; i < n; i++) {
    const datum = data[i % 100] as Datum
    engine.submit({ kind, group: engine.root, demand }, [{ datum, mode: 'inout' }], 0)
  }
}

/** Everybody adds to one datum, one at a time. */
const commutative: Shape = (engine, n) => {
  const kind = kindOf('add')
  const datum = new Datum()
  for (let i = 0; i < n; i++) {
    engine.submit({ kind, group: engine.root, demand }, [{ datum, mode: 'commutative' }], 0)
  }
}

/** Priorities in no order, so that the queue cannot profit from one. */
const mixed: Shape = (engine, n) => {
  const kind = kindOf('mixed')
  for (let i = 0; i < n; i++) {
    engine.submit({ kind, group: engine.root, demand, priority: Math.imul(i, 0x9e3779b1) >>> 8 }, [], 0)
  }
}

/** A writer after a writer, of which the last ends first. */
const overwritten: Shape = (engine, n) => {
  const kind = kindOf('over')
  const datum = new Datum()
  for (let i = 0; i < n; i++) {
    engine.submit({ kind, group: engine.root, demand }, [{ datum, mode: 'out' }], 0)
  }
}

const engineWith = (policy: Policy): Engine =>
  new Engine({ nodes: [{ name: 'n', cpus: 2, memory: 1000, tags: [] }], policy })

/** Microseconds per task to submit all, and then to run all. */
function cost(shape: Shape, policy: Policy, n: number): number {
  const engine = engineWith(policy)
  const begin = process.cpuUsage()
  shape(engine, n)
  let now = 0
  for (let done = 0; done < n;) {
    const started: Task[] = []
    for (const one of engine.decide(now)) if (one.type === 'start') started.push(one.task)
    assert(started.length > 0, 'nothing starts')
    for (const task of started) {
      for (const { write } of task.accesses) if (write) write.value = 1
      engine.finished(task, (now += 0.001), 0.001)
    }
    done += started.length
  }
  assert.equal(engine.root.live, 0)
  const { user, system } = process.cpuUsage(begin)
  return (user + system) / n
}

interface Case {
  name: string
  shape: Shape
  policy: string
  /** So many tasks at most, and so many times the cost among 10,000. */
  many: number
  factor: number
}

const CASES: Case[] = [
  { name: 'flat', shape: flat, policy: 'fifo', many: 200_000, factor: 3 },
  { name: 'flat', shape: flat, policy: 'lifo', many: 100_000, factor: 3 },
  { name: 'flat', shape: flat, policy: 'fifo-data', many: 100_000, factor: 3 },
  { name: 'a hundred chains', shape: chains, policy: 'fifo-data', many: 200_000, factor: 3 },
  { name: 'one COMMUTATIVE datum', shape: commutative, policy: 'fifo', many: 100_000, factor: 3 },
  { name: 'one datum overwritten', shape: overwritten, policy: 'lifo', many: 100_000, factor: 3 },
  { name: 'a hundred chains', shape: chains, policy: 'lifo+hrf', many: 100_000, factor: 6 },
  { name: 'flat', shape: flat, policy: 'rank', many: 100_000, factor: 6 },
  { name: 'priorities in no order', shape: mixed, policy: 'hrf', many: 100_000, factor: 6 },
  // A heap costs the logarithm, and misses of the cache on the way.
  { name: 'priorities in no order', shape: mixed, policy: 'fifo', many: 100_000, factor: 6 },
]
for (const { name, shape, policy: called, many, factor } of CASES) {
  test(`given ${many} tasks (${name}, ${called}), each should cost about what it costs among 10000`, context => {
    const policy = findPolicy(called)
    cost(shape, policy, 10_000)
    const low = Math.min(...Array.from({ length: 5 }, () => cost(shape, policy, 10_000)))
    let high = cost(shape, policy, many)
    // The machine has other work: what is too slow once gets another chance.
    for (let i = 0; i < 6 && high > factor * low; i++) high = Math.min(high, cost(shape, policy, many))
    context.diagnostic(`${low.toFixed(2)} µs per task among 10000, ${high.toFixed(2)} among ${many}`)
    assert(high <= factor * low, `${high.toFixed(2)} µs against ${low.toFixed(2)} µs`)
  })
}

const collect = (): (() => void) => {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

const PENDING: [string, Shape, number][] = [
  ['ready, with a result each', flat, 900],
  ['waiting in chains', chains, 750],
  ['members of one team', commutative, 600],
]
for (const [name, shape, most] of PENDING) {
  test(`given 200,000 pending tasks (${name}), each should take less than ${most} bytes`, context => {
    const gc = collect()
    const engine = engineWith(fifo)
    gc()
    const before = process.memoryUsage().heapUsed
    shape(engine, 200_000)
    gc()
    const bytes = (process.memoryUsage().heapUsed - before) / 200_000
    context.diagnostic(`${bytes.toFixed(0)} bytes of heap per pending task`)
    assert.equal(engine.root.live, 200_000)
    assert(bytes < most, `${bytes.toFixed(0)} bytes`)
  })
}
