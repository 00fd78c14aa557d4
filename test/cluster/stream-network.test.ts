/**
 * Frames of streams over a network that delays, breaks and loses nodes, at random, against what has to hold. RUNS and SEED
 * choose more and others: RUNS=10000 SEED=$RANDOM node --import tsx --test test/cluster/stream-network.test.ts
 */
import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import type { Channel, ChannelEvents, Holds } from '../../src/cluster/streams/channel.ts'
import { Incoming } from '../../src/cluster/streams/incoming.ts'
import { FrameSplitter } from '../../src/cluster/link/frames.ts'
import { FLAGS, RELAY } from '../../src/cluster/streams/messages.ts'
import type { NodeOfRun } from '../../src/cluster/streams/messages.ts'
import { Outgoing } from '../../src/cluster/streams/outgoing.ts'
import { endedFrame, frameOf, pathOf, readCarried } from '../../src/cluster/streams/relay-frame.ts'
import { Routes } from '../../src/cluster/streams/routes.ts'
import { checkText } from '../../src/stream/index.ts'
import type { Plan } from '../../src/stream/index.ts'
import { configOf } from '../stream/support.ts'
import type { Stage } from '../stream/support.ts'
import { Random } from '../core/random.ts'

const RUNS = Number(process.env['RUNS'] ?? 150)
const SEED = Number(process.env['SEED'] ?? 20261115)
const HEADER = 5
const NODES = 4
/** Frames of a way that wait before its files do, and with how few of them these go on. */
const MOST_FRAMES = 6
const FEW_FRAMES = 3
/** Bytes around a frame that is carried. */
const CARRIED = 9

const withNumber = (type: number, path: string, number: number, flags: number): Buffer =>
  frameOf(type, path, writer => {
    const rest = Buffer.alloc(5)
    rest.writeUInt32LE(number)
    rest[4] = flags
    writer.raw(rest)
  })

const dataFrame = (path: string, at: number, bytes: string): Buffer =>
  frameOf(RELAY.data, path, writer => {
    const offset = Buffer.alloc(8)
    offset.writeBigUInt64LE(BigInt(at))
    writer.raw(offset)
    writer.raw(Buffer.from(bytes))
  })

const completeFrame = (path: string, size: number): Buffer =>
  frameOf(RELAY.complete, path, writer => {
    const rest = Buffer.alloc(12)
    rest.writeBigUInt64LE(BigInt(size))
    writer.raw(rest)
  })

/** A file where it is made: it grows, may be cut once, and is complete. */
interface Made {
  readonly path: string
  generation: number
  bytes: string
  sent: number
  isBegun: boolean
  isAgain: boolean
  isDone: boolean
  /** Its step has completed it; what was not sent yet may be held. */
  isComplete: boolean
  isHeld: boolean
  steps: ('grow' | 'cut' | 'end')[]
}

interface Taken {
  bytes: string
  state: 'open' | 'complete' | 'failed'
}

/** It has nothing to say but bytes, and must not. */
const isStuck = ({ isBegun, isComplete, isHeld, sent, bytes }: Made): boolean =>
  isBegun && isComplete && isHeld && sent < bytes.length

/** What a relay does, without files. */
class Relay {
  readonly made: Made[]
  readonly taken = new Map<string, Taken>()
  readonly ended = new Map<string, number>()
  again = 0
  #againTold = 0
  #hasEnded = false
  /** Files to be told of before the end. */
  #late: string[] | null = null
  readonly #step: string
  readonly #check: (step: string, failed: number) => void

  constructor(step: string, made: Made[], check: (step: string, failed: number) => void) {
    this.#step = step
    this.made = made
    this.#check = check
  }

  get isIdle(): boolean {
    return this.#hasEnded && this.#againTold === this.again && this.made.every(({ isDone }) => isDone)
  }

  hold(path: string, isHeld: boolean): void {
    for (const file of this.made) if (file.path === path) file.isHeld = isHeld
  }

  sendAgain(): void {
    this.again++
    this.#late = null
    for (const file of this.made) {
      if (file.isBegun) file.isAgain = true
      file.isBegun = file.isDone = false
      file.sent = 0
    }
  }

  /** What it says next. */
  next(pick: (most: number) => number): Buffer | null {
    const late = this.#late?.shift()
    if (late !== undefined) return frameOf(RELAY.late, late, () => undefined)
    const left = this.made.filter(file => !file.isDone && !isStuck(file))
    if (left.length > 0) return this.#about(left[pick(left.length)] as Made, pick)
    if (!this.#hasEnded) {
      if (this.#late === null) {
        this.#late = this.made.flatMap(({ isDone, path }) => (isDone ? [] : [path]))
        return this.next(pick)
      }
      this.#hasEnded = true
      return endedFrame(this.#step, 0, '').fill(
        1,
        HEADER + 2 + this.#step.length,
        HEADER + 3 + this.#step.length,
      )
    }
    if (this.#againTold === this.again || this.made.some(({ isDone }) => !isDone)) return null
    this.#againTold = this.again
    return frameOf(RELAY.again, '', writer => {
      const count = Buffer.alloc(4)
      count.writeUInt32LE(this.again)
      writer.raw(count)
    })
  }

  #about(file: Made, pick: (most: number) => number): Buffer | null {
    if (!file.isBegun) {
      file.isBegun = true
      return withNumber(RELAY.begin, file.path, file.generation, file.isAgain ? FLAGS.again : 0)
    }
    if (file.sent < file.bytes.length && !file.isHeld && (file.isComplete || pick(3) > 0)) {
      const piece = file.bytes.slice(file.sent, file.sent + 1 + pick(4))
      file.sent += piece.length
      return dataFrame(file.path, file.sent - piece.length, piece)
    }
    switch (file.isComplete ? 'end' : file.steps.shift()) {
      case 'grow':
        file.bytes += `${file.path}${file.generation}${file.bytes.length};`
        return this.#about(file, pick)
      case 'cut':
        file.generation++
        file.bytes = ''
        file.sent = 0
        return withNumber(RELAY.cut, file.path, file.generation, 0)
      default:
        file.isComplete = true
        if (file.sent < file.bytes.length) return null
        file.isDone = true
        return completeFrame(file.path, file.bytes.length)
    }
  }

  take(frame: Buffer): void {
    const type = frame[4]
    const path = pathOf(frame, HEADER)
    const at = HEADER + 2 + path.length
    if (type === RELAY.ended) {
      const failed = frame.readUInt32LE(at + 4)
      this.ended.set(path, (this.ended.get(path) ?? 0) + frame.readUInt32LE(at) + failed)
      return this.#check(path, failed)
    }
    const file = this.taken.get(path)
    switch (type) {
      case RELAY.begin:
        if (file && ((frame.at(-1) ?? 0) & FLAGS.again) === 0) assert.fail(`${path} begins twice`)
        if (!file) this.taken.set(path, { bytes: '', state: 'open' })
        return
      case RELAY.data: {
        assert.equal(file?.state, 'open', `${path}: bytes of a file that is not open`)
        const offset = Number(frame.readBigUInt64LE(at))
        assert.ok(offset <= file.bytes.length, `${path} would have a hole`)
        const bytes = frame.toString('utf8', at + 8)
        file.bytes = file.bytes.slice(0, offset) + bytes + file.bytes.slice(offset + bytes.length)
        return
      }
      case RELAY.cut:
        assert.ok(file)
        file.bytes = ''
        return
      case RELAY.complete:
        assert.equal(file?.state, 'open')
        assert.equal(file.bytes.length, Number(frame.readBigUInt64LE(at)), path)
        file.state = 'complete'
        return
      default:
        if (file) file.state = 'failed'
        else this.taken.set(path, { bytes: '', state: 'failed' })
    }
  }
}

/** Frames that wait at each node of a chain, and what breaks. */
interface Line {
  readonly source: number
  readonly id: string
  readonly chain: readonly number[]
  readonly queues: Buffer[][]
  isBroken: boolean
  /** What wait for room. */
  readonly held: Set<Holds>
  readonly events: ChannelEvents | null
}

class World {
  readonly relays: Relay[] = []
  readonly outgoing: Outgoing[] = []
  readonly incoming: Incoming[] = []
  readonly lines: Line[] = []
  readonly opening: { go: () => void }[] = []
  readonly isHeld: boolean[] = []
  readonly lost = new Set<number>()
  readonly news: (() => void)[] = []
  /** What each relay has been told, in order. */
  readonly toRelay: (() => void)[][] = []
  readonly pick: (most: number) => number
  readonly #routes: Routes
  readonly #blocked = new Set<string>()

  constructor(seed: number) {
    const numbers = new Random(seed)
    this.pick = most => numbers.below(most)
    const stages: Record<string, Stage> = {}
    for (let i = 0; i < NODES; i++) {
      const others = Array.from({ length: NODES }, (_, k) => k).filter(k => k !== i && this.pick(3) > 0)
      stages[`s${i}`] = {
        out: [`a${i}`, `b${i}`, `c${i}`],
        in: others.flatMap(k => [`a${k}`, ...(this.pick(2) ? [`b${k}`] : [])]),
      }
    }
    const homes = { hashing: ['c0'], manual: [{ name: 'c1', app_node: 's3' }] }
    const { plan, problems } = checkText(
      configOf(stages, this.pick(2) ? { home_node_policies: homes } : {}),
      'c.json',
    )
    const nodes: NodeOfRun[] = Array.from({ length: NODES }, (_, i) => ({
      name: `n${i}`,
      addresses: [],
      steps: [[`s${i}`, 1, 0]],
    }))
    assert.ok(plan, JSON.stringify(problems))
    this.#routes = new Routes(plan as Plan, nodes)
    for (let k = this.pick(4); k > 0; k--) this.#blocked.add(`${this.pick(NODES)} ${this.pick(NODES)}`)
    for (let me = 0; me < NODES; me++) this.#node(me)
  }

  #node(me: number): void {
    const made = ['a', 'b', 'c'].map((name): Made => ({
      path: `${name}${me}`,
      generation: 0,
      bytes: '',
      sent: 0,
      isBegun: false,
      isAgain: false,
      isDone: false,
      isComplete: false,
      isHeld: false,
      steps: [
        ...Array.from({ length: this.pick(6) }, () =>
          this.pick(5) === 0 ? ('cut' as const) : ('grow' as const),
        ),
        'end',
      ],
    }))
    const relay = new Relay(`s${me}`, made, (step, failed) => this.#ended(me, step, failed))
    this.relays.push(relay)
    this.isHeld.push(false)
    const source: Holds = {
      pause: () => void (this.isHeld[me] = true),
      resume: () => void (this.isHeld[me] = false),
    }
    this.incoming.push(
      new Incoming(me, {
        toRelay: frame => relay.take(Buffer.from(frame)),
        nameOf: String,
        placedOn: node => new Map([[`s${node}`, 1]]),
      }),
    )
    this.outgoing.push(
      new Outgoing(
        me,
        this.#routes,
        { open: (...words) => this.#open(...words) },
        source,
        {
          // The relay hears it later, and may say other things before.
          again: () => void this.toRelay[me]?.push(() => relay.sendAgain()),
          hold: (path, isHeld) => void this.toRelay[me]?.push(() => relay.hold(path, isHeld)),
          note: () => undefined,
          nameOf: String,
          isTold: () => false,
          byCoordinator: { pass: frame => this.#carry(me, frame) },
        },
        { most: 400, few: 200, over: 300 },
      ),
    )
    this.toRelay.push([])
  }

  /** The end of a step is only told when all of its files are there, or have failed. */
  #ended(at: number, step: string, failed: number): void {
    const source = Number(step.slice(1))
    if (failed > 0) return assert.ok(this.lost.has(source), `${step} failed at ${at}`)
    for (const { path, bytes } of this.relays[source]?.made ?? []) {
      if (!this.#routes.of(path).includes(at)) continue
      const taken = this.relays[at]?.taken.get(path)
      assert.equal(taken?.state, 'complete', `${path} at ${at} when ${step} has ended`)
      assert.equal(taken.bytes, bytes)
    }
  }

  #open(source: number, id: string, chain: readonly number[], events: ChannelEvents): Promise<Channel> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        const hops = [source, ...chain]
        const isCut = chain.some((node, i) => this.lost.has(node) || this.#blocked.has(`${hops[i]} ${node}`))
        if (isCut || this.pick(12) === 0) return reject(new Error('unreachable'))
        const line: Line = {
          source,
          id,
          chain,
          queues: chain.map(() => []),
          isBroken: false,
          held: new Set(),
          events,
        }
        this.lines.push(line)
        for (const node of chain) this.incoming[node]?.begin(source, id)
        const end = (): void => this.#cut(line, this.pick(chain.length), false)
        resolve({
          id,
          chain,
          pass: (frame, ...sources) => {
            if (line.isBroken) return
            line.queues[0]?.push(Buffer.from(frame))
            if ((line.queues[0]?.length ?? 0) < MOST_FRAMES) return
            for (const one of sources) {
              line.held.add(one)
              one.pause()
            }
          },
          end,
        })
      }
      this.opening.push({ go })
    })
  }

  /** What has passed the place still arrives. */
  #cut(line: Line, hop: number, isHeard: boolean): void {
    if (line.isBroken) return
    line.isBroken = true
    this.#goOn(line)
    for (let i = 0; i <= hop; i++) line.queues[i] = []
    if (isHeard) this.news.push(() => line.events?.closed(false))
  }

  #goOn(line: Line): void {
    for (const one of line.held) one.resume()
    line.held.clear()
  }

  #carry(from: number, frame: Buffer): void {
    const { to } = readCarried(frame)
    let line = this.lines.find(one => one.source === from && one.events === null && one.chain[0] === to)
    if (!line)
      this.lines.push(
        (line = {
          source: from,
          id: `c${to}`,
          chain: [to],
          queues: [[]],
          isBroken: false,
          held: new Set(),
          events: null,
        }),
      )
    line.queues[0]?.push(Buffer.from(readCarried(frame).frame))
  }

  lose(node: number): void {
    this.lost.add(node)
    for (const line of this.lines) {
      const hop = line.chain.indexOf(node)
      if (hop < 0 && line.source !== node) continue
      if (line.events)
        this.#cut(line, line.source === node ? this.pick(line.chain.length) : hop, line.source !== node)
      else if (hop >= 0) line.queues[0] = []
    }
    for (let other = 0; other < NODES; other++) {
      if (other === node) continue
      this.news.push(() => {
        this.outgoing[other]?.lost(node)
        void this.incoming[other]?.lost(node)
      })
    }
  }

  breakOne(): void {
    const open = this.lines.filter(({ isBroken, events }) => events && !isBroken)
    const line = open[this.pick(open.length)]
    if (line) this.#cut(line, this.pick(line.chain.length), true)
  }

  #deliver(line: Line): void {
    const full = line.queues.flatMap((queue, hop) => (queue.length > 0 ? [hop] : []))
    const hop = full[this.pick(full.length)]
    if (hop === undefined) return
    const frame = line.queues[hop]?.shift() as Buffer
    if (hop === 0 && (line.queues[0]?.length ?? 0) < FEW_FRAMES) this.#goOn(line)
    line.queues[hop + 1]?.push(frame)
    const node = line.chain[hop] as number
    if (this.lost.has(node)) return
    const none: Holds = { pause: () => undefined, resume: () => undefined }
    new FrameSplitter().push(frame, (type, content) =>
      this.incoming[node]?.frame(line.source, line.id, type, frame, content, none),
    )
    // What it takes by the coordinator it tells of.
    if (!line.events) this.news.push(() => this.outgoing[line.source]?.taken(node, CARRIED + frame.length))
  }

  /** One thing happens. False: nothing can. */
  step(): boolean {
    const busy = this.lines.filter(({ queues }) => queues.some(queue => queue.length > 0))
    const talking = this.relays.flatMap((relay, i) =>
      this.lost.has(i) || this.isHeld[i] || relay.isIdle ? [] : [i],
    )
    const choices: (() => void)[] = []
    for (const line of busy)
      choices.push(
        () => this.#deliver(line),
        () => this.#deliver(line),
      )
    for (const i of talking) {
      choices.push(() => {
        const frame = this.relays[i]?.next(this.pick)
        if (frame)
          new FrameSplitter().push(frame, (type, content) => this.outgoing[i]?.take(type, frame, content))
      })
    }
    for (const told of this.toRelay) if (told.length > 0) choices.push(() => told.shift()?.())
    for (const list of [this.opening, this.news] as { length: number }[]) {
      if (list.length === 0) continue
      choices.push(() => {
        if (list === this.opening) this.opening.splice(this.pick(this.opening.length), 1)[0]?.go()
        else this.news.splice(this.pick(this.news.length), 1)[0]?.()
      })
    }
    for (const line of this.lines) {
      if (line.isBroken && line.queues.every(queue => queue.length === 0))
        for (const node of line.chain) this.incoming[node]?.end(line.source, line.id)
    }
    choices[this.pick(choices.length)]?.()
    return choices.length > 0
  }

  /** What has to hold in the end. */
  check(): void {
    for (let at = 0; at < NODES; at++) {
      if (this.lost.has(at)) continue
      for (let source = 0; source < NODES; source++) {
        if (source === at) continue
        assert.equal(this.relays[at]?.ended.get(`s${source}`), 1, `the end of s${source} at ${at}`)
        for (const { path, bytes } of this.relays[source]?.made ?? []) {
          const taken = this.relays[at]?.taken.get(path)
          if (!this.#routes.of(path).includes(at)) assert.equal(taken, undefined)
          else if (!this.lost.has(source))
            assert.deepEqual(taken, { bytes, state: 'complete' }, `${path} at ${at}`)
          else if (taken) assert.notEqual(taken.state, 'open')
        }
      }
    }
  }
}

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

async function run(seed: number): Promise<void> {
  const world = new World(seed)
  const faults = world.pick(4)
  const when = Array.from({ length: faults }, () => world.pick(150))
  let idle = 0
  for (let steps = 0; idle < 400; steps++) {
    assert.ok(steps < 50_000, 'it does not come to an end')
    for (const at of when) {
      if (at !== steps) continue
      if (world.pick(3) === 0 && world.lost.size < 2) {
        const alive = [0, 1, 2, 3].filter(node => !world.lost.has(node))
        world.lose(alive[world.pick(alive.length)] as number)
      } else world.breakOne()
    }
    if (world.step()) idle = 0
    else {
      idle++
      mock.timers.tick(20)
    }
    await settled()
  }
  world.check()
}

describe('frames of streams over a network that fails', () => {
  test(`${RUNS} random runs from seed ${SEED}`, { timeout: 3_600_000 }, async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      for (let i = 0; i < RUNS; i++) {
        const seed = SEED + i
        await run(seed).catch((error: unknown) => {
          throw new Error(`SEED=${seed} RUNS=1: ${error instanceof Error ? error.message : String(error)}`, {
            cause: error,
          })
        })
      }
    } finally {
      mock.timers.reset()
    }
  })
})
