import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AccessMode, Datum, Version } from '../../src/core/data/datum.ts'
import type { AccessRequest } from '../../src/core/engine.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { Group } from '../../src/core/tasks/group.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { FakeMachine } from './fake-machine.ts'
import type { Inside } from './fake-machine.ts'
import { checkEnd } from './invariants.ts'
import { cpus, kindOf } from './rig.ts'

/**
 * Tasks that call tasks over the data of all tasks: such programs can wait for themselves. A call that would
 * make a circle is refused; all others run to their end.
 */

interface Call {
  uses: { datum: number; mode: AccessMode }[]
  cpus: number
  inside: Call[]
}

interface Program {
  seed: number
  inPlace: boolean[]
  calls: Call[]
  pauses: number[]
}

const DATA = 4
const modes: AccessMode[] = ['in', 'in', 'out', 'inout', 'inout', 'concurrent', 'commutative']

const callsAt = (depth: number): fc.Arbitrary<Call> =>
  fc.record({
    uses: fc.uniqueArray(fc.record({ datum: fc.nat(DATA - 1), mode: fc.constantFrom(...modes) }), {
      maxLength: 2,
      selector: ({ datum }) => datum,
    }),
    cpus: fc.constantFrom(1, 1, 2),
    inside: depth === 0 ? fc.constant([]) : fc.array(callsAt(depth - 1), { maxLength: 2 }),
  })

const programs: fc.Arbitrary<Program> = fc.record({
  seed: fc.nat(0x7fffffff),
  inPlace: fc.array(
    fc.nat(2).map(n => n === 2),
    { minLength: DATA, maxLength: DATA },
  ),
  calls: fc.array(callsAt(2), { minLength: 2, maxLength: 12, size: 'max' }),
  pauses: fc.array(fc.nat(6), { minLength: 1, maxLength: 12 }),
})

/** What the task, or the call that is about to be made, cannot start or end without. Looks at every task. */
class Waits {
  readonly #tasks: Task[]

  constructor(tasks: readonly Task[]) {
    this.#tasks = tasks.filter(task => !task.ended)
  }

  ofCall(datum: Datum, mode: AccessMode): Task[] {
    const { current } = datum
    const joins = current.team && !current.team.closed && current.team.mode === mode
    const read = joins ? current.team?.base : current
    const list = mode === 'out' && !datum.inPlace ? [] : this.#makers(read as Version)
    if (joins) list.push(...this.#holders(mode, current))
    if (datum.inPlace && mode !== 'in') list.push(...this.#users(datum, Infinity, joins ? current : null))
    return list
  }

  ofTask(task: Task): Task[] {
    if (task.state === 'stopping') return []
    const list = this.#tasks.filter(({ parent }) => parent === task)
    for (const { mode, read, write } of task.accesses) {
      if (read) list.push(...this.#makers(read))
      if (!write) continue
      list.push(...this.#holders(mode, write))
      if (write.datum.inPlace) list.push(...this.#users(write.datum, task.id, write.team ? write : null))
    }
    return list.filter(one => one !== task)
  }

  reaches(from: Task[], targets: ReadonlySet<Task>): boolean {
    const seen = new Set(from)
    for (const task of seen) {
      if (targets.has(task)) return true
      for (const next of this.ofTask(task)) seen.add(next)
    }
    return false
  }

  #makers(version: Version): Task[] {
    if (version.settled) return []
    // What is being stopped is lost already, but for memory in place, which it may still be writing.
    return this.#tasks.filter(
      ({ accesses, state }) =>
        accesses.some(({ write }) => write === version) && (state !== 'stopping' || version.datum.inPlace),
    )
  }

  #holders(mode: AccessMode, version: Version): Task[] {
    if (mode !== 'commutative') return []
    return this.#makers(version).filter(({ state }) => state === 'running' || state === 'blocked')
  }

  #users(datum: Datum, before: number, team: Version | null): Task[] {
    return this.#tasks.filter(
      ({ id, accesses }) =>
        id < before &&
        accesses.some(({ read, write }) => (write ?? read)?.datum === datum) &&
        !(team && accesses.some(({ write }) => write === team)),
    )
  }
}

let refusals = 0

class Nested {
  readonly machine: FakeMachine
  readonly #data: Datum[]
  readonly #kind = kindOf('task')

  constructor({ seed, inPlace }: Program) {
    this.machine = new FakeMachine({ nodes: [{ name: 'n', cpus: 3, memory: 0, tags: [] }], seed, deaths: 2 })
    this.#data = inPlace.map((flag, i) => this.machine.datum(flag, null, `initial${i}`))
  }

  play({ calls, pauses }: Program): void {
    const { machine } = this
    for (const [i, call] of calls.entries()) {
      this.#call(`${i}`, call, machine.engine.root, null)
      machine.turn()
      for (let n = pauses[i % pauses.length] ?? 0; n > 0 && machine.alive; n--) machine.step()
    }
    machine.turn()
    while (machine.engine.root.live > 0) {
      assert(machine.alive, machine.deadlock('no task goes on'))
      machine.step()
    }
    for (const datum of this.#data) machine.engine.read(datum, machine.now)
    machine.turn()
    checkEnd(machine)
  }

  #call(uid: string, { uses, cpus: demand, inside }: Call, group: Group, parent: Task | null): void {
    const { machine } = this
    const requests = uses.map(({ datum, mode }): AccessRequest => ({
      datum: this.#data[datum] as Datum,
      mode,
    }))
    const make = (caller: Task): Inside => {
      const own = machine.engine.createGroup(`in ${uid}`, caller.group)
      for (const [i, call] of inside.entries()) this.#call(`${uid}/${i}`, call, own, caller)
      return { group: own, data: [] }
    }
    const circle = parent !== null && this.#circle(parent, requests)
    const submit = (): Task =>
      machine.submit(
        {
          kind: this.#kind,
          group,
          parent,
          demand: cpus(demand),
          payload: { uid, failures: 0, short: true, early: -1, inside: inside.length > 0 ? make : null },
        },
        requests,
      )
    if (!circle) return void submit()
    refusals++
    assert.throws(submit, error => error instanceof MillraceError && error.code === 'MR_NESTED_CYCLE')
  }

  #circle(parent: Task, requests: readonly AccessRequest[]): boolean {
    const callers = new Set<Task>()
    for (let at: Task | null = parent; at; at = at.parent) callers.add(at)
    const waits = new Waits(this.machine.tasks)
    return waits.reaches(
      requests.flatMap(({ datum, mode }) => waits.ofCall(datum, mode)),
      callers,
    )
  }
}

test('given tasks that call tasks over shared data, we should refuse exactly the calls that would never end', () => {
  const runs = 800 * Number(process.env['MILLRACE_RUNS'] ?? 1)
  fc.assert(
    fc.property(programs, program => new Nested(program).play(program)),
    { numRuns: Math.ceil(runs), includeErrorInReport: true },
  )
  assert(refusals > runs / 10, 'there are circles among these programs')
})
