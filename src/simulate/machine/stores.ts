import type { Version } from '../../core/data/datum.ts'
import type { Alarm, Clock } from '../clock.ts'
import { ModelDevice } from './device.ts'
import { ModelNode } from './model-node.ts'
import type { Pipe } from './pipe.ts'
import type { NodeModel, Platform } from './platform.ts'

/** Nodes, their devices and what is between them: finds the way that bytes take, and how long it takes. */
export class Stores {
  readonly nodes: ModelNode[]
  /** In the order of the core's devices. */
  readonly devices: ModelDevice[]
  /** Bytes that went from one node to another. */
  between = 0
  readonly #clock: Clock
  /** Those that each node reaches, and the one that it writes to by itself. */
  readonly #own: (readonly ModelDevice[])[] = []
  readonly #homes: (ModelDevice | null)[] = []
  readonly #shared = new Map<string, ModelDevice>()
  /** Where each version is that has bytes. */
  readonly #places = new Map<number, ModelDevice>()
  /** The name of the device whose folder a path is in; null for paths that are in none. */
  deviceAt: (path: string) => string | null

  constructor(clock: Clock, platform: Platform) {
    this.#clock = clock
    this.nodes = []
    this.devices = []
    for (const node of platform.nodes) this.join(node)
    this.deviceAt = findByPath(this.devices)
  }

  /** There is one node more. */
  join(model: NodeModel): void {
    const index = this.nodes.length
    this.nodes.push(new ModelNode(this.#clock, index, model))
    const own = (model.storage ?? []).map(one => {
      const known = one.shared && this.#shared.get(one.name)
      if (known) return known
      const device = new ModelDevice(this.#clock, one, one.shared ? null : index)
      if (one.shared) this.#shared.set(one.name, device)
      this.devices.push(device)
      return device
    })
    this.#own.push(own)
    this.#homes.push(own.find(({ node }) => node === null) ?? own[0] ?? null)
  }

  /** Where tasks of this node read and write that say nothing else: what all share, or its first device. */
  home(node: number): ModelDevice | null {
    return this.#homes[node] ?? null
  }

  /** Where a file of this name is written that no I/O task writes: by its path, or else at home. */
  placeFor(path: string | null, node: number): ModelDevice | null {
    const name = path === null ? null : this.deviceAt(path)
    const named = name === null ? null : this.#own[node]?.find(({ model }) => model.name === name)
    return named ?? this.home(node)
  }

  placeOf(version: number): ModelDevice | null {
    return this.#places.get(version) ?? null
  }

  put(version: number, device: ModelDevice): void {
    this.#places.set(version, device)
  }

  /** It has no readers left. */
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

  write(version: Version | null, bytes: number, node: ModelNode, to: ModelDevice | null, done: Alarm): void {
    const device = to ?? this.placeFor(version?.datum.path ?? null, node.index)
    if (version !== null) {
      node.cache.write(version.id, bytes)
      if (device) this.#places.set(version.id, device)
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
    if (from && to) this.between += bytes
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

/** Devices of one name are one place on several nodes. Most platforms say nothing of paths that are used. */
function findByPath(devices: readonly ModelDevice[]): (path: string) => string | null {
  const folders = new Map<string, string>()
  for (const { model } of devices) folders.set(model.path.replace(/\/*$/, '/'), model.name)
  const longestFirst = [...folders].sort(([a], [b]) => b.length - a.length)
  return path => longestFirst.find(([folder]) => path.startsWith(folder))?.[1] ?? null
}
