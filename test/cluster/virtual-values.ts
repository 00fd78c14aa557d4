import { NodeLost } from '../../src/cluster/coordinator/remote-processes.ts'
import type { Version } from '../../src/core/data/datum.ts'
import type { Engine } from '../../src/core/engine.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import type { ReturnWhy } from '../../src/core/why.ts'
import { Stored } from '../../src/model/encoding/stored.ts'
import { BufferOwnership, copyOut } from '../../src/node/threads/buffer-ownership.ts'
import type { Elsewhere } from '../../src/node/threads/elsewhere.ts'
import { Lineage } from '../../src/runtime/lineage.ts'
import type { Random } from '../core/random.ts'

/** An agent, as values on it see it. */
export interface ValueNode {
  readonly index: number
  readonly isGone: boolean
}

interface Uses {
  readonly engine: Engine
  readonly random: Random
  now(): number
  /** Asks the node for a value; `here` or `gone` follows, or nothing if the node dies without a word. */
  ask(node: ValueNode, number: number): void
  inputsLost(versions: ReadonlySet<Version>, why: ReturnWhy): void
  /** Can this node get something from that one now? */
  reaches(node: ValueNode, other: ValueNode): boolean
}

interface Value {
  readonly text: string
  readonly at: Set<ValueNode>
  isHere: boolean
  coming: { node: ValueNode; done(isHere: boolean): void }[]
}

/**
 * Values that stay on the virtual nodes which made them. What is lost, wanted and made again is decided by the code of a run
 * (`Lineage`); where a value is, and how it travels, is a model.
 */
export class VirtualValues implements Elsewhere {
  readonly lineage: Lineage
  readonly #uses: Uses
  readonly #buffers = new BufferOwnership()
  readonly #values: Value[] = []
  readonly #numbers = new WeakMap<ArrayBufferLike, number>()
  readonly #settled = new Map<Version, (() => void)[]>()
  /** A promise was settled: what waits for it goes on before anything else happens. */
  hasNews = false
  /** Values that were brought to the program. */
  brought = 0

  constructor(uses: Uses) {
    this.#uses = uses
    const { engine } = uses
    const onSettled = (version: Version, go: () => void): void => {
      if (version.settled) return go()
      this.#settled.set(version, [...(this.#settled.get(version) ?? []), go])
      engine.watch(version)
    }
    const runtime = {
      engine,
      onSettled,
      now: () => uses.now(),
      note: () => undefined,
      schedule: () => undefined,
      nodes: { all: [{ inputsLost: uses.inputsLost }] },
      values: { throwFor: (version: Version) => Promise.reject(new Error(`version is ${version.state}`)) },
      copyOut: (version: Version) => this.#copyOut(version),
    }
    this.lineage = new Lineage(runtime as never, this.#buffers)
    this.lineage.begin(this)
  }

  // --- where values are ---

  #of(buffer: ArrayBufferLike): Value {
    return this.#values[this.#numbers.get(buffer) as number] as Value
  }

  make(text: string, node: ValueNode | null): Stored {
    const buffer = new SharedArrayBuffer(8)
    const value: Value = { text, at: new Set(node ? [node] : []), isHere: node === null, coming: [] }
    this.#numbers.set(buffer, this.#values.push(value) - 1)
    return new Stored(new Uint8Array(0), [buffer])
  }

  isAway(buffer: ArrayBufferLike): boolean {
    return !this.#of(buffer).isHere
  }

  isLost(buffer: ArrayBufferLike): boolean {
    return this.isAway(buffer) && !this.#source(this.#of(buffer))
  }

  isOnlyOn(buffer: ArrayBufferLike, node: number): boolean {
    return this.isAway(buffer) && [...this.#of(buffer).at].every(one => one.isGone || one.index === node)
  }

  #source({ at }: Value): ValueNode | undefined {
    return [...at].find(node => !node.isGone)
  }

  bring(buffer: ArrayBufferLike): Promise<void> | null {
    return this.isAway(buffer) ? this.#bring(this.#of(buffer)) : null
  }

  async #bring(value: Value): Promise<void> {
    for (let from = this.#source(value); from; from = this.#source(value)) {
      const node = from
      const isHere = new Promise<boolean>(done => value.coming.push({ node, done }))
      this.#uses.ask(node, this.#values.indexOf(value))
      if (await isHere) return
    }
    throw new NodeLost()
  }

  /** The program has got it. */
  came(number: number): void {
    const value = this.#values[number] as Value
    if (!value.isHere) this.brought++
    value.isHere = true
    this.hasNews = true
    for (const { done } of value.coming.splice(0)) done(true)
  }

  nodeLost(node: ValueNode): void {
    for (const value of this.#values) {
      const lost = value.coming.filter(one => one.node === node)
      value.coming = value.coming.filter(one => one.node !== node)
      for (const { done } of lost) done(false)
      if (lost.length > 0) this.hasNews = true
    }
    this.lineage.lost('one')
  }

  // --- tasks ---

  /** What the order to run it says: numbers of values. Null when something of it is to be made again first. */
  begin({ accesses }: Task): number[] | null {
    for (const { read } of accesses) if (read) this.lineage.want(read)
    if (accesses.some(({ read }) => read?.state === 'pending')) return null
    return accesses.flatMap(({ read }) => {
      const buffer = read ? (read.value as Stored).blobs[0] : undefined
      return buffer ? [this.#numbers.get(buffer) as number] : []
    })
  }

  /** The values on a node that has them, or can get all of them now; else null. */
  at(node: ValueNode, numbers: readonly number[]): string[] | null {
    const values = numbers.map(number => this.#values[number] as Value)
    for (const { at, isHere } of values) {
      const isThere = isHere || at.has(node) || [...at].some(other => this.#uses.reaches(node, other))
      if (!isThere) return null
      at.add(node)
    }
    return values.map(({ text }) => text)
  }

  made(task: Task, text: string, node: ValueNode): void {
    for (const { write } of task.accesses) {
      if (!write || write.settled) continue
      const stays = this.#uses.random.chance(0.8)
      write.value = this.make(text, stays ? node : null)
    }
    this.lineage.finished(task)
  }

  settled(version: Version): void {
    const waiting = this.#settled.get(version) ?? []
    this.#settled.delete(version)
    for (const go of waiting) go()
  }

  // --- the program ---

  #copyOut(version: Version): Promise<unknown> {
    const kept = copyOut(version, this.#buffers)
    return kept instanceof Promise ? this.lineage.arrived(version, kept) : Promise.resolve(kept)
  }

  /** Waits for a version as a program does; resolves when its value is here. */
  wait(version: Version): Promise<void> {
    return new Promise((resolve, reject) => {
      const { engine } = this.#uses
      const go = (): void => {
        const { value } = version
        if (!(value instanceof Stored)) return reject(new Error(`it is ${version.state}`))
        this.hasNews = true
        this.#copyOut(version).then(() => resolve(), reject)
      }
      if (version.settled) go()
      else {
        this.#settled.set(version, [...(this.#settled.get(version) ?? []), go])
        engine.watch(version)
      }
    })
  }

  textOf({ value }: Version): string | null {
    const [buffer] = value instanceof Stored ? value.blobs : []
    return buffer ? this.#of(buffer).text : null
  }
}
