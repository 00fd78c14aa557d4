import assert from 'node:assert/strict'
import { nearestValid } from '../../src/core/data/datum.ts'
import type { Datum } from '../../src/core/data/datum.ts'
import type { AccessRequest } from '../../src/core/engine.ts'
import { findPolicy } from '../../src/core/schedule/policy.ts'
import { Implementation } from '../../src/core/tasks/task.ts'
import type { Group } from '../../src/core/tasks/group.ts'
import type { Kind, Task } from '../../src/core/tasks/task.ts'
import { Box, FakeMachine } from './fake-machine.ts'
import type { Inside, Kept, PlayedPolicy } from './fake-machine.ts'
import { checkEnd } from './invariants.ts'
import { earlyIndex } from './oracle.ts'
import { INSIDE_DATA, usesOf } from './program.ts'
import type { Call, Program, Step, Use } from './program.ts'
import { Random } from './random.ts'
import { show } from './values.ts'
import type { Value } from './values.ts'

/** Plays a random program on the fake machine, in program order, while earlier tasks run. */
export class Player {
  readonly machine: FakeMachine
  readonly data: Datum[]
  /** The results of its calls. */
  readonly results: Datum[] = []
  readonly groups: Group[]
  /** The task of each call; for calls inside, of the last attempt of their caller. */
  readonly tasks = new Map<string, { task: Task; call: Call }>()
  /** Groups that ever failed, were cancelled, or lost their caller. */
  readonly troubled = new Set<Group>()
  closed = false
  readonly #program: Program
  readonly #kinds: Kind[]

  constructor(program: Program, deaths: number, kept: Kept | null = null, steps = Infinity) {
    this.#program = program
    this.machine = new FakeMachine({
      nodes: program.nodes,
      policy: policyOf(program),
      seed: program.seed,
      deaths,
      kept,
      steps,
    })
    this.data = program.data.map(({ inPlace, path }, i) => this.machine.datum(inPlace, path, `initial${i}`))
    this.#kinds = program.kinds.map(({ form, demands }, id) => ({
      id,
      name: `kind${id}`,
      form,
      module: 'test',
      implementations: demands.map((demand, i) => new Implementation(`version${i}`, demand)),
    }))
    const { engine } = this.machine
    this.groups = []
    for (const [i, parent] of program.groups.entries()) {
      this.groups.push(engine.createGroup(`group${i}`, this.groups[parent] ?? engine.root))
    }
  }

  play(): this {
    const { machine } = this
    for (const [number, step] of this.#program.steps.entries()) {
      this.#step(number, step)
      if (machine.random.chance(0.7)) machine.turn()
      while (machine.alive && machine.random.chance(0.3)) machine.step()
    }
    this.#waitForGroup(machine.engine.root)
    for (const datum of [...this.data, ...this.results]) machine.engine.read(datum, machine.now)
    machine.turn()
    checkEnd(machine)
    return this
  }

  /** What the datum holds in the end, or null if it never came. */
  valueOf(datum: Datum): string | null {
    if (datum.current.state !== 'ready') return null
    assert(datum.current.value instanceof Box)
    return show(datum.current.value.value as Value)
  }

  #group(index: number): Group {
    return this.groups[index] ?? this.machine.engine.root
  }

  #step(number: number, step: Step): void {
    const { machine } = this
    const { engine } = machine
    switch (step.do) {
      case 'call':
        this.#call(String(number), step.call, this, this.#group(step.call.group), null)
        return
      case 'read':
        engine.read(this.data[step.datum] as Datum, machine.now)
        return
      case 'write':
        machine.write(this.data[step.datum] as Datum, `main${number}`)
        return
      case 'fallBack':
        if (!step.result || step.datum < this.results.length) this.#fallBack(datumOf(this, step))
        return
      case 'remove': {
        const { inPlace, path } = this.data[step.datum] as Datum
        engine.remove(this.data[step.datum] as Datum, machine.now)
        this.data[step.datum] = machine.datum(inPlace, path, `fresh${number}`)
        return
      }
      case 'pause':
        machine.turn()
        for (let i = 0; i < step.events && machine.alive; i++) machine.step()
        return
      case 'wait':
        this.#waitForGroup(this.#group(step.group))
        return
      case 'cancel':
        this.troubled.add(this.#group(step.group))
        engine.cancel(
          this.#group(step.group),
          { kind: 'group', group: 'outer', how: 'cancelled' },
          machine.now,
        )
        return
      case 'cancelTask': {
        const task = machine.tasks[step.call % Math.max(machine.tasks.length, 1)]
        if (task && !task.ended && task.state !== 'stopping') {
          this.troubled.add(task.group)
          engine.cancelTask(task, null, { kind: 'unread' }, machine.now)
        }
        return
      }
      case 'acknowledge':
        engine.acknowledge(this.#group(step.group))
        return
      case 'close':
        this.closed = true
        engine.close('interrupt', machine.now)
        return
      default:
        assert.fail(`unknown step ${String(step satisfies never)}`)
    }
  }

  #call(uid: string, call: Call, world: World, group: Group, parent: Task | null): Task {
    const { machine } = this
    const uses = usesOf(call, world.results.length)
    const accesses: AccessRequest[] = uses.map(use => ({ datum: datumOf(world, use), mode: use.mode }))
    const result = machine.result()
    accesses.push({ datum: result, mode: 'out' })
    const task = machine.submit(
      {
        kind: this.#kinds[call.kind] as Kind,
        group,
        parent,
        priority: call.priority,
        demand: call.demand,
        onFailure: call.onFailure,
        retries: call.retries,
        timed: call.timed,
        payload: {
          uid,
          failures: call.failures,
          short: this.#program.kinds[call.kind]?.short ?? false,
          early: call.early ? earlyIndex(call, uses, use => datumOf(world, use).inPlace) : -1,
          inside: call.inside.length > 0 ? (caller: Task) => this.#inside(uid, call, caller) : null,
        },
      },
      accesses,
    )
    world.results.push(result)
    this.tasks.set(uid, { task, call })
    return task
  }

  #inside(uid: string, call: Call, caller: Task): Inside {
    const { machine } = this
    const group = machine.engine.createGroup(`in ${caller.name}`, caller.group)
    const data = INSIDE_DATA.map(({ inPlace, path }, i) => machine.datum(inPlace, path, `${uid}/initial${i}`))
    const results: Datum[] = []
    for (const [i, child] of call.inside.entries()) {
      this.#call(`${uid}/${i}`, child, { data, results }, group, caller)
    }
    return { group, data: [...data, ...results] }
  }

  /** Waits, as a program would that is told of a failure, and takes what was there before. */
  #fallBack(datum: Datum): void {
    const { machine } = this
    machine.engine.read(datum, machine.now)
    for (;;) {
      const version = nearestValid(datum.current)
      if (version.settled && datum.current.settled) break
      const awaited = datum.current.settled ? version : datum.current
      machine.watch(awaited)
      this.#until(() => machine.settled.has(awaited), 'a watched version is never settled')
    }
    machine.fallBack(datum)
  }

  #waitForGroup(group: Group): void {
    const { machine } = this
    machine.engine.watchGroup(group)
    this.#until(() => machine.idle.has(group), `group '${group.name}' never ends`)
    machine.idle.delete(group)
    assert.equal(group.live, 0)
  }

  #until(holds: () => boolean, what: string): void {
    const { machine } = this
    machine.turn()
    while (!holds()) {
      if (!machine.alive) machine.turn()
      if (holds()) return
      assert(machine.alive, machine.deadlock(what))
      machine.step()
    }
  }
}

interface World {
  data: Datum[]
  results: Datum[]
}

const datumOf = ({ data, results }: World, { datum, result }: Omit<Use, 'mode'>): Datum =>
  (result ? results.at(-1 - datum) : data[datum]) as Datum

function policyOf({ policy, seed, nodes }: Program): PlayedPolicy {
  if (policy !== 'random') return findPolicy(policy)
  const random = new Random(seed ^ 0x5bd1e995)
  // A third of the tasks are for one node only, where they could run there.
  const only = new Map<number, number>()
  return {
    name: 'random',
    score: () => random.below(5),
    place({ id }, { node }) {
      if ((id + seed) % 3 !== 0 || node !== (id >> 1) % nodes.length) return 0
      only.set(id, node)
      return Infinity
    },
    only: ({ id }) => only.get(id),
  }
}
