import assert from 'node:assert/strict'
import { Datum } from '../../../src/core/data/datum.ts'
import type { Version } from '../../../src/core/data/datum.ts'
import { Engine } from '../../../src/core/engine.ts'
import type { Instruction } from '../../../src/core/engine.ts'
import { findPolicy } from '../../../src/core/schedule/policy.ts'
import type { Move } from '../../../src/core/io/task-io.ts'
import { ioDemandOf } from '../../../src/core/tasks/demand.ts'
import type { Bandwidth } from '../../../src/core/tasks/demand.ts'
import type { Kind, Task } from '../../../src/core/tasks/task.ts'
import { Random } from '../random.ts'
import { kindOf } from '../rig.ts'

export interface IoCall {
  kind: number
  reads: number[]
  writes: number
  io: boolean
  size: number
  bandwidth: number | null | 'auto' | 'bounded' | 'adaptive'
  priority: number
  temporary: boolean
  failures: number
  retries: number
  cancel: boolean
}

export interface IoProgram {
  seed: number
  cpus: number
  ioExecutors: number
  nodes: number
  devices: { name: string; bandwidth: number | null; capacity: number; shared: boolean }[]
  policy: string
  ioPolicy: string
  flush: 'off' | 'idle' | 'always'
  prefetch: boolean
  learningShare: number
  maxIntermediate: number | null
  /** What of temporary data the program removes: what is read no more, all when it has made its calls, or nothing. */
  removes: 'early' | 'at its end' | 'never'
  /** Devices that are not there. */
  gone: number
  calls: IoCall[]
}

/** Something that will happen: a task or a move ends, a file is deleted. */
type Coming = { task: Task } | { move: Move } | { gone: Version }

/** No call writes more. */
const LARGEST = 10

/** The last layer has room for everything, so that only the bound and the others can be short. */
const PFS = { name: 'pfs', path: '/pfs', read: 5, write: 5, capacity: 100_000, shared: true }

class Machine {
  readonly engine: Engine
  readonly random: Random
  readonly coming: Coming[] = []
  readonly tasks: Task[] = []
  readonly gone = new Set<Version>()
  readonly versions = new Set<Version>()
  now = 0
  /** The bound could not hold. */
  exceeded = false
  readonly #program: IoProgram
  readonly #failures = new Map<Task, number>()

  constructor(program: IoProgram) {
    this.#program = program
    this.random = new Random(program.seed)
    const storage = program.devices.map(({ name, bandwidth, capacity, shared }) =>
      deviceOf(name, bandwidth, capacity, shared),
    )
    const bound = program.maxIntermediate
    this.engine = new Engine({
      nodes: Array.from({ length: program.nodes }, (_, i) => ({
        name: `n${i}`,
        cpus: program.cpus,
        memory: 0,
        tags: [],
        ioExecutors: program.ioExecutors,
        storage: [...storage, PFS],
      })),
      policy: findPolicy(program.policy),
      ioPolicy: program.ioPolicy,
      flush: program.flush,
      prefetch: program.prefetch,
      learningShare: program.learningShare,
      // Less than a run in program order needs can be asked for, and then does not hold.
      ...(bound === null
        ? {}
        : {
            maxIntermediate: Math.max(bound, program.removes === 'early' ? sequentialPeak(program) : LARGEST),
          }),
    })
    for (const device of this.engine.io.devices.slice(0, program.gone)) {
      this.engine.io.fail(device, 'is not there', 0)
    }
  }

  /** Nothing is under way: where tasks wait for room that only the program could free, one goes on. */
  letOneGo(): boolean {
    const { standstill } = this.engine.io
    if (this.coming.length > 0 || !standstill.isThere || !standstill.letOneGo(this.now)) return false
    this.exceeded = true
    this.turn()
    return true
  }

  submit(call: IoCall, kind: Kind, uses: { datum: Datum; mode: 'in' | 'out' }[]): Task {
    const { size } = call
    const bandwidth: Bandwidth = call.bandwidth === 'bounded' ? { min: 1, max: 4, delta: 2 } : call.bandwidth
    const demand = ioDemandOf({ bandwidth: capped(bandwidth), size }, call.io ? 0 : 1)
    const { priority, retries } = call
    const spec = {
      kind,
      group: this.engine.root,
      demand,
      priority,
      retries,
      onFailure: 'cancelSuccessors' as const,
    }
    const task = this.engine.submit(spec, uses, this.now)
    this.#failures.set(task, call.failures)
    this.tasks.push(task)
    for (const { write } of task.accesses) if (write) this.versions.add(write)
    return task
  }

  /** Asks the engine until it wants nothing more. */
  turn(): void {
    for (let rounds = 0; ; rounds++) {
      assert(rounds < 1000, 'the engine goes on giving instructions')
      const instructions = this.engine.decide(this.now)
      for (const one of instructions) this.#perform(one)
      this.check()
      if (instructions.length > 0) continue
      this.#checkNothingIsLeft()
      return
    }
  }

  #perform(one: Instruction): void {
    switch (one.type) {
      case 'start': {
        const { task } = one
        for (const { read } of task.accesses) {
          assert(!read || read.state === 'ready', 'starts before its input is there')
          assert(!read || !this.gone.has(read), 'reads what is gone')
        }
        this.engine.started(task, this.now)
        this.coming.push({ task })
        return
      }
      case 'stop':
        return
      case 'move': {
        const { move } = one
        assert.equal(move.version.place?.device, move.from)
        assert(move.bytes >= 0 && move.from !== move.to)
        this.coming.push({ move })
        return
      }
      case 'discard':
        assert(!one.version.place?.move, 'discarded on its way')
        this.coming.push({ gone: one.version })
        return
      default:
    }
  }

  /** Lets one of the things that are to come happen. */
  step(): boolean {
    const { coming, random } = this
    const ready = coming.filter(one => !('move' in one) || one.move.rate > 0)
    if (ready.length === 0) return false
    const one = ready[random.below(ready.length)] as Coming
    coming.splice(coming.indexOf(one), 1)
    this.now += random.next() * 10
    if ('task' in one) this.#end(one.task)
    else if ('gone' in one) {
      this.gone.add(one.gone)
      one.gone.value = undefined
      this.engine.io.gone(one.gone)
    } else if (random.chance(0.1)) this.engine.io.moveFailed(one.move, 'no luck', this.now)
    else this.engine.io.moved(one.move, this.now)
    return true
  }

  #end(task: Task): void {
    const { engine, now } = this
    if (task.state === 'stopping') return engine.stopped(task, now)
    const left = this.#failures.get(task) ?? 0
    if (left > 0) {
      this.#failures.set(task, left - 1)
      return engine.failed(task, { name: 'Error', message: 'it broke' }, new Error('it broke'), now)
    }
    const size = task.demand.storage?.size ?? 0
    const files = task.accesses.flatMap(({ write }) => (write ? [write] : []))
    for (const version of files) {
      version.value = task.name
      // Never more than was said, now and then less.
      const bytes = (size / files.length) * (this.random.chance(0.3) ? this.random.next() : 1)
      engine.io.stored(version, bytes)
    }
    engine.finished(task, now)
  }

  /** What must hold at every instant. */
  check(): void {
    const { io, nodes } = this.engine
    const held = new Map<string, number>()
    const add = (key: string, n: number): void => void held.set(key, (held.get(key) ?? 0) + n)
    const lanes = new Set<string>()
    for (const task of this.tasks) {
      const holds = task.state === 'running' || task.state === 'stopping'
      if (!holds || !task.io) continue
      const { device, source, bandwidth, sourceBandwidth, direction, reserved } = task.io
      if (task.demand.io) {
        assert(task.lane >= this.#program.cpus, 'lanes of I/O come after those of the CPUs')
        const lane = `${task.node}/${task.lane}`
        assert(!lanes.has(lane), 'two tasks on one lane')
        lanes.add(lane)
        add(`slots ${task.node}`, 1)
      }
      if (!device) continue
      assert(device.running.has(task))
      add(`${device.index} ${direction}`, bandwidth)
      if (source) add(`${source.index} read`, sourceBandwidth)
      add(`${device.index} used`, reserved)
    }
    for (const version of this.versions) {
      const { place } = version
      if (!place) continue
      add(`${place.device.index} used`, place.bytes)
      if (place.move) add(`${place.move.to.index} used`, place.move.bytes)
    }
    for (const device of io.devices) {
      for (const way of ['read', 'write'] as const) {
        const sum = held.get(`${device.index} ${way}`) ?? 0
        assert(sum <= device[way].limit * (1 + 1e-9), `${sum} of ${device[way].limit} on ${device.name}`)
        assert(Math.abs(sum - device[way].used) < 1e-6, `the ${way} budget of ${device.name} has lost count`)
      }
      const used = held.get(`${device.index} used`) ?? 0
      assert(Math.abs(used - device.used) < 1e-6, `${device.name} has lost count: ${used}, ${device.used}`)
      assert(used <= device.capacity + 1e-6, `${used} on ${device.name} of ${device.capacity}`)
      const learner = device.learner
      if (learner?.isLearning) {
        for (const task of device.running) assert.equal(task.kind, learner.kind, 'learning is not alone')
      }
    }
    for (const node of nodes) {
      assert((held.get(`slots ${node.index}`) ?? 0) <= this.#program.ioExecutors)
    }
    this.#checkBound()
  }

  /** No task is left that could start: only with fcfs, where no task waits for others until it was overtaken too often. */
  #checkNothingIsLeft(): void {
    const { io } = this.engine
    const ready = this.tasks.filter(({ state, demand }) => state === 'ready' && demand.io)
    const { ioPolicy, policy } = this.#program
    // With another policy than fifo, one that the bound holds back may come before one that it lets go, in one class.
    if (ioPolicy !== 'fcfs' || (this.engine.io.bound && policy !== 'fifo')) return
    if (ready.some(({ bypassed }) => bypassed >= 16)) return
    for (const task of ready) {
      const wish = task.demand.storage?.bandwidth ?? null
      // To ask for the others changes what is being learned.
      if ((wish !== null && typeof wish !== 'number') || !task.io) continue
      if (io.bound && !io.bound.allows(task)) continue
      assert(io.storage.find(task, task.io) === null, `${task.name} could start`)
    }
  }

  #checkBound(): void {
    const { bound } = this.engine.io
    if (!bound || this.exceeded) return
    let alive = 0
    for (const task of this.tasks) {
      const isTemporary = task.accesses.some(({ write }) => write?.datum.temporary)
      if (isTemporary && (task.state === 'running' || task.state === 'stopping')) {
        alive += task.demand.storage?.size ?? 0
      }
    }
    for (const version of this.versions) {
      if (version.datum.temporary && version.state === 'ready' && !this.gone.has(version)) {
        alive += version.place?.bytes ?? 0
      }
    }
    assert(alive <= bound.limit + 1e-6, `${alive} bytes of temporary data, and ${bound.limit} are allowed`)
  }
}

/** The most that temporary data take when the calls run one after another. */
export function sequentialPeak({ calls }: IoProgram): number {
  const lastUse: number[] = []
  const sizes: number[] = []
  const made: number[] = []
  calls.forEach((call, i) => {
    for (const back of call.reads) if (back < sizes.length) lastUse[sizes.length - 1 - back] = i
    if (call.writes === 0) return
    made[sizes.length] = i
    lastUse[sizes.length] = i
    sizes.push(call.temporary ? call.size : 0)
  })
  let alive = 0
  let peak = 0
  calls.forEach((_, i) => {
    sizes.forEach((size, file) => void (made[file] === i && (alive += size)))
    peak = Math.max(peak, alive)
    sizes.forEach((size, file) => void (lastUse[file] === i && (alive -= size)))
  })
  return peak
}

const capped = (bandwidth: Bandwidth): Bandwidth =>
  typeof bandwidth === 'number' ? Math.min(bandwidth, 5) : bandwidth

/** Plays the program while earlier tasks run; throws if anything is not as it must be. */
export function playIo(program: IoProgram): void {
  const machine = new Machine(program)
  const { engine, random } = machine
  const kinds = Array.from({ length: 4 }, (_, i) => kindOf(`k${i}`))
  const files: Datum[] = []
  const cancels: Task[] = []
  for (const call of program.calls) {
    const uses: { datum: Datum; mode: 'in' | 'out' }[] = []
    for (const back of new Set(call.reads)) {
      const datum = files.at(-1 - back)
      if (datum && !datum.removed) uses.push({ datum, mode: 'in' })
    }
    if (call.writes > 0) {
      const out = new Datum(`/f${files.length}`, false, false)
      out.temporary = call.temporary
      files.push(out)
      uses.push({ datum: out, mode: 'out' })
    }
    const task = machine.submit(call, kinds[call.kind] as Kind, uses)
    if (call.cancel) cancels.push(task)
    // No task reads further back than this.
    const old = program.removes === 'early' ? files.at(-8) : undefined
    if (old?.temporary && !old.removed) engine.remove(old, machine.now)
    if (program.maxIntermediate !== null) continue
    if (random.chance(0.5)) machine.turn()
    while (random.chance(0.3) && machine.step()) machine.turn()
  }
  if (program.removes !== 'never') {
    for (const datum of files) if (datum.temporary && !datum.removed) engine.remove(datum, machine.now)
  }
  machine.turn()
  for (let steps = 0; machine.step() || machine.letOneGo(); steps++) {
    assert(steps < 100_000, 'it never ends')
    const doomed = random.chance(0.05) ? cancels.pop() : undefined
    if (doomed && !doomed.ended) engine.cancelTask(doomed, null, { kind: 'unread' }, machine.now)
    machine.turn()
  }
  assert(!machine.exceeded || program.removes !== 'early', 'the bound is enough for the program in order')
  for (const task of machine.tasks) assert(task.ended, `stuck: ${engine.explain(task)}; ${task.story()}`)
  assert.equal(engine.readyCount, 0)
  for (const device of engine.io.devices) {
    assert.equal(device.running.size, 0)
    assert.equal(device.write.used + device.read.used, 0)
  }
}

/** As fast both ways. */
export const deviceOf = (name: string, bandwidth: number | null, capacity: number, shared = false) => ({
  name,
  path: `/${name}`,
  read: bandwidth,
  write: bandwidth,
  capacity,
  shared,
})
