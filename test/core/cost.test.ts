import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Datum } from '../../src/core/data/datum.ts'
import { Engine } from '../../src/core/engine.ts'
import { fifo, findPolicy } from '../../src/core/schedule/policy.ts'
import type { Policy } from '../../src/core/schedule/policy.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { cpus, kindOf } from './rig.ts'
import { countSteps } from './steps.ts'

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

/** All tasks add to one datum, one at a time. */
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

/** Steps per task to submit all, and then to run all. */
function cost(shape: Shape, policy: Policy, n: number): number {
  const engine = engineWith(policy)
  const steps = countSteps(() => {
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
  })
  assert.equal(engine.root.live, 0)
  return steps / n
}

/** A heap costs the logarithm: 15 steps down instead of 12, beside what does not grow. */
const HEAP = 1.35
const SAME = 1.02

const CASES: [string, Shape, policy: string, factor: number][] = [
  ['flat', flat, 'fifo', SAME],
  ['flat', flat, 'lifo', SAME],
  ['flat', flat, 'fifo-data', SAME],
  ['a hundred chains', chains, 'fifo-data', SAME],
  ['one COMMUTATIVE datum', commutative, 'fifo', HEAP],
  ['one datum overwritten', overwritten, 'lifo', SAME],
  ['a hundred chains', chains, 'lifo+hrf', HEAP],
  ['flat', flat, 'rank', HEAP],
  ['priorities in no order', mixed, 'hrf', HEAP],
  ['priorities in no order', mixed, 'fifo', HEAP],
]
for (const [name, shape, called, factor] of CASES) {
  test(`given 30,000 tasks (${name}, ${called}), each should take as many steps as among 3,000`, context => {
    const policy = findPolicy(called)
    const few = cost(shape, policy, 3_000)
    const many = cost(shape, policy, 30_000)
    context.diagnostic(`${few.toFixed(1)} steps per task among 3,000, ${many.toFixed(1)} among 30,000`)
    assert(many <= factor * few, `${many.toFixed(1)} steps against ${few.toFixed(1)}`)
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
