import type { Alarm, Clock } from './clock.ts'
import { ModelDevice } from './device.ts'
import { ModelNode } from './model-node.ts'
import type { Pipe } from './pipe.ts'
import type { Platform } from './platform.ts'

/** Nodes, their devices and what is between them: finds the way that bytes take, and how long it takes. */
export class Stores {
  readonly nodes: readonly ModelNode[]
  /** In the order of the core's devices. */
  readonly devices: readonly ModelDevice[]
  readonly #clock: Clock
  readonly #homes: (ModelDevice | null)[]
  /** Where each version is that has bytes. */
  readonly #places = new Map<number, ModelDevice>()

  constructor(clock: Clock, platform: Platform) {
    this.#clock = clock
    this.nodes = platform.nodes.map((node, i) => new ModelNode(clock, i, node))
    const devices: ModelDevice[] = []
    this.#homes = platform.nodes.map(({ storage = [] }, i) => {
      const own = storage.map(model => {
        const known = model.shared && devices.find(one => one.node === null && one.model.name === model.name)
        if (known) return known
        const device = new ModelDevice(clock, model, model.shared ? null : i)
        devices.push(device)
        return device
      })
      return own.find(({ node }) => node === null) ?? own[0] ?? null
    })
    this.devices = devices
  }

  /** Where tasks of this node read and write that say nothing else: what all share, or its first device. */
  home(node: number): ModelDevice | null {
    return this.#homes[node] ?? null
  }

  placeOf(version: number): ModelDevice | null {
    return this.#places.get(version) ?? null
  }

  put(version: number, device: ModelDevice): void {
    this.#places.set(version, device)
  }

  /** Nobody will read it again. */
  forget(version: number): void {
    this.#places.delete(version)
  }

  read(version: number | null, bytes: number, node: ModelNode, done: Alarm): void {
    const device = (version === null ? null : this.placeOf(version)) ?? this.home(node.index)
    const hit = version === null ? 0 : node.cache.read(version, bytes)
    const missed = bytes - hit
    const after = this.#afterCache(node.cacheTime(hit), done)
    if (missed <= 0 || !device) return after.ring(this.#clock.now)
    const owner = this.#ownerOf(device)
    const isKeptThere = version !== null && owner !== node && (owner?.cache.has(version) ?? 0) >= bytes
    const way: Step[] = []
    if (!isKeptThere) way.push(then => device.transfer('read', missed, then))
    this.#addLinks(way, owner, node, missed)
    together(way, after, this.#clock)
  }

  write(version: number | null, bytes: number, node: ModelNode, to: ModelDevice | null, done: Alarm): void {
    const device = to ?? this.home(node.index)
    if (version !== null) {
      node.cache.write(version, bytes)
      if (device) this.#places.set(version, device)
    }
    if (!device) return done.ring(this.#clock.now)
    const way: Step[] = [then => device.transfer('write', bytes, then)]
    this.#addLinks(way, node, this.#ownerOf(device), bytes)
    together(way, done, this.#clock)
  }

  /** Copies bytes from one device to another. */
  copy(from: ModelDevice, to: ModelDevice, bytes: number, done: Alarm): void {
    const way: Step[] = [
      then => from.transfer('read', bytes, then),
      then => to.transfer('write', bytes, then),
    ]
    this.#addLinks(way, this.#ownerOf(from), this.#ownerOf(to), bytes)
    together(way, done, this.#clock)
  }

  #ownerOf(device: ModelDevice): ModelNode | null {
    return device.node === null ? null : (this.nodes[device.node] ?? null)
  }

  #addLinks(way: Step[], from: ModelNode | null, to: ModelNode | null, bytes: number): void {
    if (from === to) return
    addPipe(way, from?.outward, bytes)
    addPipe(way, to?.inward, bytes)
  }

  /** What is read from the cache comes after what is not. */
  #afterCache(wait: number, done: Alarm): Alarm {
    return wait > 0 ? { ring: now => this.#clock.at(now + wait, done) } : done
  }
}

type Step = (then: Alarm) => void

function addPipe(way: Step[], pipe: Pipe | null | undefined, bytes: number): void {
  if (pipe) way.push(then => pipe.push(bytes, then))
}

/** Bytes pass everything on their way at the same time: the slowest part says how long it takes. */
function together(way: readonly Step[], done: Alarm, clock: Clock): void {
  const [only] = way
  if (!only) return done.ring(clock.now)
  if (way.length === 1) return only(done)
  let left = way.length
  const oneLess = (now: number): void => {
    if (--left === 0) done.ring(now)
  }
  for (const step of way) step({ ring: oneLess })
}
