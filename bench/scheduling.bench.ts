import { Datum } from '../src/core/data/datum.ts'
import { Engine } from '../src/core/engine.ts'
import { ioDemandOf } from '../src/core/tasks/demand.ts'
import { Implementation } from '../src/core/tasks/task.ts'
import type { IoWishes } from '../src/core/tasks/demand.ts'
import type { Kind, Task } from '../src/core/tasks/task.ts'
import { bench } from './harness.ts'
import type { Case } from './harness.ts'

/** What the core takes to decide about I/O, without any file: how much waiting tasks add to a decision. */

const MB = 1e6
const FEW = 10
const MANY = 10_000
const ROUNDS = 10_000
const KINDS = 4

function engineWith(ioPolicy: string): Engine {
  const storage = [1, 2, 3, 4].map(i => ({
    name: `layer${i}`,
    path: `/layer${i}`,
    read: (1000 * MB) / i,
    write: (1000 * MB) / i,
    capacity: 1e15,
  }))
  return new Engine({
    nodes: [{ name: 'n', cpus: 2, memory: 0, tags: [], ioExecutors: 64, storage }],
    ioPolicy,
  })
}

const kinds: Kind[] = Array.from({ length: KINDS }, (_, id) => ({
  id,
  name: `kind${id}`,
  form: 'function',
  module: '',
  implementations: [new Implementation('')],
}))

/** Microseconds of `decide` while a number of tasks wait; each time one ends, one starts and one comes. */
function decision(ioPolicy: string, waiting: number, wishes: (i: number) => IoWishes): number {
  const engine = engineWith(ioPolicy)
  let submitted = 0
  let now = 0
  const submit = (): void => {
    const i = submitted++
    const demand = ioDemandOf(wishes(i))
    const kind = kinds[i % KINDS] as Kind
    engine.submit({ kind, group: engine.root, demand }, [{ datum: new Datum(`/f${i}`), mode: 'out' }], now)
  }
  const running: Task[] = []
  let spent = 0
  const decide = (): void => {
    const begin = performance.now()
    const instructions = engine.decide(now)
    spent += performance.now() - begin
    for (const one of instructions) if (one.type === 'start') running.push(one.task)
  }
  for (let i = 0; i < waiting + 64; i++) submit()
  decide()
  for (let i = 0; i < 2 * ROUNDS; i++) {
    if (i === ROUNDS) spent = 0
    const task = running.shift() as Task
    for (const { write } of task.accesses) if (write) write.value = 1
    engine.finished(task, ++now)
    for (const { write } of task.accesses) if (write) engine.io.gone(write)
    submit()
    decide()
  }
  return (spent / ROUNDS) * 1000
}

const WISHES: [string, (i: number) => IoWishes][] = [
  ['four static bandwidths', i => ({ bandwidth: ((i % 4) + 1) * 10 * MB, size: MB })],
  ['auto', () => ({ bandwidth: 'auto', size: MB })],
  ['adaptive', () => ({ bandwidth: 'adaptive', size: MB })],
  ['256 static bandwidths', i => ({ bandwidth: ((i % 256) + 1) * 0.2 * MB, size: MB })],
  // All different, and more than the devices can serve at once.
  ['10,000 static bandwidths', i => ({ bandwidth: (((i * 7919) % MANY) + 1) * 0.02 * MB, size: MB })],
]

const cases: Case[] = []
for (const policy of ['fcfs', 'priority', 'backfill']) {
  for (const [name, wishes] of WISHES) {
    cases.push({
      name: `${policy}, ${name}`,
      unit: 'us',
      better: 'lower',
      take: 'median',
      rounds: 5,
      about: `What a decision takes longer when ${MANY} I/O tasks wait on 4 layers instead of ${FEW}.`,
      arms: [
        {
          system: 'millrace',
          run: () =>
            Promise.resolve(Math.max(0, decision(policy, MANY, wishes) - decision(policy, FEW, wishes))),
        },
      ],
      goals: [{ of: 'millrace', below: 20, unit: 'us' }],
    })
  }
}

await bench('scheduling', cases)
