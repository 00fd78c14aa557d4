import assert from 'node:assert/strict'
import { AgentLease, CoordinatorLease } from '../../src/cluster/lease/lease.ts'
import { FROM_AGENT, TO_AGENT } from '../../src/cluster/link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../../src/cluster/link/frames.ts'
import type { FrameReader } from '../../src/cluster/link/frames.ts'
import { Engine } from '../../src/core/engine.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { lost } from '../../src/core/why.ts'
import { Heap } from '../../src/general/heap.ts'
import type { Version } from '../../src/core/data/datum.ts'
import type { Random } from '../core/random.ts'
import { VirtualValues } from './virtual-values.ts'

/**
 * The core, leases of both sides and frames, on a virtual clock: a coordinator and agents between which the network delays,
 * loses, doubles, reorders, splits and is cut, and agents that are killed and stopped. What agents do is a model; who runs
 * what, who is alive and what a frame says is decided by the code of a run.
 */

/** Between two looks at the clock, as in renew-lease.ts and answer-leases.ts; milliseconds. */
const [AGENT_LOOK, COORDINATOR_LOOK] = [100, 250]
/** Between two tries to get what a task reads. */
const FETCH_AGAIN = 300

/** From, until. */
type Span = readonly [number, number]

export interface Weather {
  /** Of questions and answers of leases: the share that is lost, and that comes twice. */
  readonly loss: number
  readonly doubles: number
  /** Longest way; milliseconds. */
  readonly delay: number
  /** By the number of an agent. */
  readonly cuts: ReadonlyMap<number, readonly Span[]>
  readonly stops: ReadonlyMap<number, readonly Span[]>
  readonly kills: ReadonlyMap<number, number>
}

/** What a task does: the value that it makes of what it reads, and how long that takes. */
export interface Job {
  readonly run: (inputs: readonly string[]) => string
  readonly ms: number
}

interface Member {
  readonly number: number
  readonly index: number
  readonly lease: CoordinatorLease
  readonly agent: AgentLease
  /** Attempts that the coordinator has sent there. */
  readonly sent: Map<number, Task>
  /** What runs there, by task. */
  readonly runs: Set<number>
  health: string
  isGone: boolean
  /** The process is there. */
  isAlive: boolean
  /** When the last byte of each way arrives: a connection keeps its order. */
  readonly arrives: { agent: number; coordinator: number }
  readonly readers: { agent: FrameSplitter; coordinator: FrameSplitter }
}

type Side = 'agent' | 'coordinator'

export class VirtualCluster {
  readonly engine: Engine
  readonly members: Member[] = []
  now = 0
  /** Nodes that were given up. */
  lostNodes = 0
  /** Attempts that began. */
  begun = 0
  /** Where values stay on nodes; else they are in the messages. */
  readonly values: VirtualValues | null
  readonly #random: Random
  readonly #weather: Weather
  readonly #cpus: number
  readonly #replaceAfter: number
  readonly #events = new Heap<{ at: number; order: number; run: () => void }>(
    (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order),
  )
  #order = 0

  constructor(nodes: number, cpus: number, weather: Weather, random: Random, stays = false) {
    this.#random = random
    this.#weather = weather
    this.#cpus = cpus
    this.#replaceAfter = 500 + random.next() * 5000
    this.engine = new Engine({ nodes: [], mayGrow: true })
    this.values = stays ? this.#valuesOn() : null
    for (let i = 0; i < nodes; i++) this.#join()
    this.#watch()
  }

  /** Until the graph is empty. */
  run(limit: number): void {
    this.#decide()
    while (this.engine.root.live > 0) {
      const next = this.#events.pop()
      assert(next && next.at < limit, `nothing more happens at ${this.now}`)
      this.now = next.at
      next.run()
      this.#decide()
    }
  }

  /** The same with values on nodes, until the program has those that it waits for, too. */
  async runAll(limit: number, waits: readonly Promise<unknown>[]): Promise<void> {
    let isOver = false
    const all = Promise.all(waits).finally(() => (isOver = true))
    // Its failure is thrown below.
    all.catch(() => undefined)
    this.#decide()
    for (;;) {
      if (this.values?.hasNews || this.engine.root.live === 0) {
        if (this.values) this.values.hasNews = false
        await new Promise(resolve => {
          setImmediate(resolve)
        })
        this.#decide()
      }
      if (isOver && this.engine.root.live === 0) break
      const next = this.#events.pop()
      assert(next && next.at < limit, `nothing more happens at ${this.now}`)
      this.now = next.at
      next.run()
      this.#decide()
    }
    await all
  }

  /** Something that the program does. */
  later(time: number, run: () => void): void {
    this.#at(time, run)
  }

  #valuesOn(): VirtualValues {
    return new VirtualValues({
      engine: this.engine,
      random: this.#random,
      now: () => this.now,
      ask: (node, number) =>
        this.#send(node as Member, 'agent', writer => {
          writer.begin(TO_AGENT.bring)
          writer.varint(number)
          writer.end()
        }),
      inputsLost: versions => this.#revoke(versions),
      reaches: (node, other) => {
        const [one, two] = [node as Member, other as Member]
        return two.isAlive && [one, two].every(at => !this.#isCut(at, this.now) && this.#wakes(at) === null)
      },
    })
  }

  /** Tasks that wait for these on their nodes come back, unless they have begun. */
  #revoke(versions: ReadonlySet<Version>): void {
    for (const member of this.members) {
      for (const task of member.sent.values()) {
        if (!task.accesses.some(({ read }) => read && versions.has(read))) continue
        this.#send(member, 'agent', writer => {
          writer.begin(TO_AGENT.revoke)
          writer.varint(task.id)
          writer.end()
        })
      }
    }
  }

  #at(time: number, run: () => void): void {
    this.#events.push({ at: Math.max(time, this.now), order: this.#order++, run })
  }

  #join(): void {
    const number = this.members.length
    const { index } = this.engine.membership.joined({
      name: `n${number}`,
      cpus: this.#cpus,
      memory: 1e9,
      tags: [],
    })
    const member: Member = {
      number,
      index,
      lease: new CoordinatorLease(number, this.now),
      agent: new AgentLease(this.now),
      sent: new Map(),
      runs: new Set(),
      health: 'alive',
      isGone: false,
      isAlive: true,
      arrives: { agent: 0, coordinator: 0 },
      readers: { agent: new FrameSplitter(), coordinator: new FrameSplitter() },
    }
    this.members.push(member)
    const kill = this.#weather.kills.get(number)
    if (kill !== undefined) this.#at(this.now + kill, () => this.#die(member, true))
    this.#renew(member)
  }

  // --- faults ---

  /** When it goes on, if it is stopped now. */
  #wakes({ number }: Member): number | null {
    return (
      this.#weather.stops.get(number)?.find(([from, to]) => this.now >= from && this.now < to)?.[1] ?? null
    )
  }

  #isCut({ number }: Member, at: number): Span | undefined {
    return this.#weather.cuts.get(number)?.find(([from, to]) => at >= from && at < to)
  }

  /** All that it runs is over. Where its process ends, the system closes its connections. */
  #die(member: Member, isKilled: boolean): void {
    if (!member.isAlive) return
    member.isAlive = false
    member.runs.clear()
    const close = (): void => this.#lose(member)
    const cut = this.#isCut(member, this.now)
    // Of a process that ends while the network is cut, nothing is heard.
    if (isKilled && !cut)
      this.#at(Math.max(this.now + this.#random.next() * 50, member.arrives.coordinator), close)
  }

  #lose(member: Member): void {
    if (member.isGone) return
    member.isGone = true
    member.lease.lost()
    this.lostNodes++
    const { engine, now } = this
    engine.membership.lost(member.index, now)
    for (const task of member.sent.values()) {
      assert.equal(engine.afterLoss(task, 'node'), 'again', 'no task is the cause of these faults')
      engine.returned(task, lost('its node was lost'), now)
    }
    member.sent.clear()
    this.values?.nodeLost(member)
    this.#at(now + this.#replaceAfter, () => this.#join())
  }

  // --- leases: packets that may be lost, doubled and overtaken ---

  #packet(member: Member, deliver: () => void): void {
    const { loss, doubles, delay } = this.#weather
    for (let copies = this.#random.chance(doubles) ? 2 : 1; copies > 0; copies--) {
      const arrives = this.now + this.#random.next() * delay
      if (this.#random.chance(loss) || this.#isCut(member, this.now) || this.#isCut(member, arrives)) continue
      this.#at(arrives, deliver)
    }
  }

  #renew(member: Member): void {
    if (!member.isAlive) return
    const wakes = this.#wakes(member)
    if (wakes !== null) return this.#at(wakes, () => this.#renew(member))
    const action = member.agent.tick(this.now)
    if (action === 'end') return this.#die(member, true)
    this.#at(this.now + AGENT_LOOK, () => this.#renew(member))
    if (!action) return
    const { ask } = action
    this.#packet(member, () => {
      const answer = member.lease.asked(member.number, ask, this.now)
      this.#health(member)
      if (answer !== null) this.#packet(member, () => this.#answered(member, answer))
    })
  }

  #answered(member: Member, answer: number): void {
    const wakes = this.#wakes(member)
    if (wakes !== null) this.#at(wakes, () => this.#answered(member, answer))
    else member.agent.answered(answer)
  }

  #watch(): void {
    for (const member of this.members) {
      member.lease.tick(this.now)
      this.#health(member)
    }
    this.#at(this.now + COORDINATOR_LOOK, () => this.#watch())
  }

  #health(member: Member): void {
    const { health } = member.lease
    if (member.isGone || health === member.health) return
    member.health = health
    if (health === 'dead') this.#lose(member)
    else this.engine.membership.changed(member.index, health === 'suspect', Infinity)
  }

  // --- messages: a connection, in order; a cut holds bytes back ---

  #send(member: Member, to: Side, write: (writer: FrameWriter) => void): void {
    const writer = new FrameWriter()
    write(writer)
    for (let bytes = writer.take(); bytes.length > 0;) {
      const size = this.#random.chance(0.3) ? 1 + this.#random.below(bytes.length) : bytes.length
      const piece = bytes.subarray(0, size)
      bytes = bytes.subarray(size)
      const cut = this.#isCut(member, this.now)
      const way = this.#random.next() * this.#weather.delay
      // TCP is silent for longer than the cut was.
      const sent = cut ? cut[1] + this.#random.next() * (cut[1] - cut[0]) : this.now
      const arrives = Math.max(member.arrives[to], sent + way)
      member.arrives[to] = arrives
      this.#at(arrives, () => this.#receive(member, to, piece))
    }
  }

  #receive(member: Member, to: Side, piece: Buffer): void {
    if (to === 'coordinator') {
      if (!member.isGone)
        member.readers.coordinator.push(piece, (type, content) => this.#result(member, type, content))
      return
    }
    if (!member.isAlive) return
    const wakes = this.#wakes(member)
    if (wakes !== null) this.#at(wakes, () => this.#receive(member, to, piece))
    else if (member.agent.isExpired(this.now)) this.#die(member, true)
    else member.readers.agent.push(piece, (type, content) => this.#order_(member, type, content))
  }

  #decide(): void {
    for (const instruction of this.engine.decide(this.now)) {
      if (instruction.type === 'settled') this.values?.settled(instruction.version)
      if (instruction.type === 'discard' && this.values) {
        const { version } = instruction
        if (version.readers === 0 && version.obsolete) version.value = undefined
      }
      if (instruction.type !== 'start') continue
      const { task } = instruction
      const member = this.members.find(({ index }) => index === task.node) as Member
      assert.ok(
        !member.isGone && member.health === 'alive',
        'nothing begins on a node that is silent or lost',
      )
      const numbers = this.values ? this.values.begin(task) : []
      if (!numbers) {
        this.engine.returned(task, lost('what it reads was lost with a node'), this.now)
        this.#at(this.now, () => undefined)
        continue
      }
      member.sent.set(task.id, task)
      const texts = (): string[] => task.accesses.flatMap(({ read }) => (read ? [String(read.value)] : []))
      const inputs = this.values ? numbers : texts()
      this.#send(member, 'agent', writer => {
        writer.begin(TO_AGENT.task)
        writer.varint(task.id)
        writer.text(JSON.stringify(inputs))
        writer.end()
      })
      this.#jobs.set(task.id, task.payload as Job)
    }
  }

  readonly #jobs = new Map<number, Job>()

  #order_(member: Member, type: number, content: FrameReader): void {
    const id = content.varint()
    if (type === TO_AGENT.bring) return this.#tell(member, FROM_AGENT.fetched, id)
    if (type === TO_AGENT.revoke) {
      if (this.#waiting.delete(`${member.number}.${id}`)) this.#tell(member, FROM_AGENT.revoked, id)
      return
    }
    assert.equal(type, TO_AGENT.task)
    const inputs = JSON.parse(content.text()) as string[]
    if (!this.values) return this.#begin(member, id, inputs)
    this.#waiting.add(`${member.number}.${id}`)
    this.#tryBegin(member, id, inputs.map(Number))
  }

  /** Tasks that wait on their nodes for what they read. */
  readonly #waiting = new Set<string>()

  #tryBegin(member: Member, id: number, numbers: readonly number[]): void {
    const key = `${member.number}.${id}`
    if (!member.isAlive || !this.#waiting.has(key)) return
    const texts = this.#wakes(member) === null ? this.values?.at(member, numbers) : null
    if (!texts) return this.#at(this.now + FETCH_AGAIN, () => this.#tryBegin(member, id, numbers))
    this.#waiting.delete(key)
    this.#begin(member, id, texts)
  }

  #tell(member: Member, type: number, number: number): void {
    this.#send(member, 'coordinator', writer => {
      writer.begin(type)
      writer.varint(number)
      writer.end()
    })
  }

  #begin(member: Member, id: number, inputs: readonly string[]): void {
    const { run, ms } = this.#jobs.get(id) as Job
    this.begun++
    for (const other of this.members) {
      if (other === member || !other.isAlive || this.#wakes(other) !== null) continue
      assert.ok(!other.runs.has(id), `task ${id} runs on two nodes at ${this.now}`)
    }
    member.runs.add(id)
    this.#at(this.now + ms, () => this.#end(member, id, run(inputs)))
  }

  #end(member: Member, id: number, value: string): void {
    if (!member.isAlive) return
    const wakes = this.#wakes(member)
    // It goes on after its lease has been looked at.
    if (wakes !== null) return this.#at(wakes + 1, () => this.#end(member, id, value))
    member.runs.delete(id)
    this.#send(member, 'coordinator', writer => {
      writer.begin(FROM_AGENT.result)
      writer.varint(id)
      writer.text(value)
      writer.end()
    })
  }

  #result(member: Member, type: number, content: FrameReader): void {
    const id = content.varint()
    if (type === FROM_AGENT.fetched) return this.values?.came(id)
    const task = member.sent.get(id)
    if (type === FROM_AGENT.revoked) {
      member.sent.delete(id)
      if (task) this.engine.returned(task, lost('what it reads was lost with a node'), this.now)
      return
    }
    assert.equal(type, FROM_AGENT.result)
    assert.ok(task, `a result of task ${id}, which is not there`)
    member.sent.delete(id)
    const value = content.text()
    if (this.values) this.values.made(task, value, member)
    else for (const { write } of task.accesses) if (write) write.value = value
    this.engine.finished(task, this.now, (task.payload as Job).ms)
  }
}
