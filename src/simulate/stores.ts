import type { Alarm, Clock } from './clock.ts'
import { Device } from './device.ts'
import { ModelNode } from './model-node.ts'
import type { Pipe } from './pipe.ts'
import type { Platform } from './platform.ts'

/** Where bytes are. `node` is null for a file system that all nodes share. */
export interface Place {
  readonly device: Device
  readonly node: ModelNode | null
}

/** Nodes, their devices and what is between them: finds the way that bytes take, and how long it takes. */
export class Stores {
  readonly nodes: readonly ModelNode[]
  readonly shared: readonly Device[]
  readonly #clock: Clock
  /** Where each version is that has bytes, and how many. */
  readonly #places = new Map<number, Place>()
  #turn = 0

  constructor(clock: Clock, platform: Platform) {
    this.#clock = clock
    this.nodes = platform.nodes.map(node => new ModelNode(clock, node))
    this.shared = platform.shared.map(device => new Device(clock, device))
  }

  placeOf(version: number): Place | null {
    return this.#places.get(version) ?? null
  }

  /** Where a task writes that says nothing else: beside itself, or what all share. */
  home(node: ModelNode): Place | null {
    const [own] = node.devices
    if (own) return { device: own, node }
    const [first] = this.shared
    return first ? { device: first, node: null } : null
  }

  /** What was there before the run: on the shared file system, or else spread over the nodes. */
  putInput(version: number, node?: number): void {
    const [first] = this.shared
    if (first && node === undefined) this.#places.set(version, { device: first, node: null })
    else {
      const at = this.nodes[node ?? this.#turn++ % this.nodes.length]
      const place = at && this.home(at)
      if (place) this.#places.set(version, place)
    }
  }

  /** Nobody will read it again: neither its device nor any cache has to keep it. */
  forget(version: number, bytes: number): void {
    const place = this.#places.get(version)
    if (!place) return
    place.device.used -= bytes
    this.#places.delete(version)
  }

  read(version: number | null, bytes: number, node: ModelNode, done: Alarm): void {
    const place = version === null ? this.home(node) : (this.#places.get(version) ?? this.home(node))
    const hit = version === null ? 0 : node.cache.read(version, bytes)
    const missed = bytes - hit
    const after = this.#afterCache(node.cacheTime(hit), done)
    if (missed <= 0 || !place) return after.ring(this.#clock.now)
    const isLocal = place.node === node
    const isKeptThere = version !== null && !isLocal && (place.node?.cache.has(version) ?? 0) >= bytes
    const way: Step[] = []
    if (!isKeptThere) way.push(then => place.device.transfer('read', missed, then))
    if (!isLocal) {
      addPipe(way, place.node?.outward ?? null, missed)
      addPipe(way, node.inward, missed)
    }
    together(way, after, this.#clock)
  }

  write(version: number | null, bytes: number, node: ModelNode, to: Place | null, done: Alarm): void {
    const place = to ?? this.home(node)
    if (version !== null) {
      node.cache.write(version, bytes)
      if (place) this.#places.set(version, place)
    }
    if (!place) return done.ring(this.#clock.now)
    place.device.used += bytes
    const way: Step[] = [then => place.device.transfer('write', bytes, then)]
    if (place.node !== node) {
      addPipe(way, node.outward, bytes)
      addPipe(way, place.node?.inward ?? null, bytes)
    }
    together(way, done, this.#clock)
  }

  /** Moves bytes between devices, as flushing does. */
  move(version: number, bytes: number, to: Place, done: Alarm): void {
    const from = this.#places.get(version)
    const way: Step[] = [then => to.device.transfer('write', bytes, then)]
    if (from) {
      way.push(then => from.device.transfer('read', bytes, then))
      if (from.node !== to.node) {
        addPipe(way, from.node?.outward ?? null, bytes)
        addPipe(way, to.node?.inward ?? null, bytes)
      }
    }
    to.device.used += bytes
    const arrived = (now: number): void => {
      if (from) from.device.used -= bytes
      this.#places.set(version, to)
      done.ring(now)
    }
    together(way, { ring: arrived }, this.#clock)
  }

  /** What is read from the cache comes after what is not. */
  #afterCache(wait: number, done: Alarm): Alarm {
    return wait > 0 ? { ring: now => this.#clock.at(now + wait, done) } : done
  }
}

type Step = (then: Alarm) => void

function addPipe(way: Step[], pipe: Pipe | null, bytes: number): void {
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
