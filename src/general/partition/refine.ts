import { limitsOf, loadsOf } from './graph.ts'
import type { Graph } from './graph.ts'

/** Times that all vertices are looked at, at most. */
const PASSES = 12

/** Moves single vertices between parts: first until no part has too much of a band, then as long as bonds are saved. */
export class Refinement {
  readonly #graph: Graph
  readonly #parts: Int32Array
  readonly #count: number
  readonly #limits: Float64Array
  readonly #loads: Float64Array
  /** Bonds of the vertex that is looked at with each part, and the parts that it has any with. */
  readonly #bonds: Float64Array
  #near: number[] = []

  constructor(graph: Graph, parts: Int32Array, shares: readonly number[]) {
    this.#graph = graph
    this.#parts = parts
    this.#count = shares.length
    this.#limits = limitsOf(graph, shares)
    this.#loads = loadsOf(graph, parts, shares.length)
    this.#bonds = new Float64Array(shares.length)
  }

  run(): void {
    this.#even()
    for (let pass = 0; pass < PASSES; pass++) if (!this.#improve()) return
  }

  /** Takes from parts that have too much. Where vertices are of one band each this always comes to an end with none left. */
  #even(): void {
    for (let pass = 0; pass < PASSES; pass++) {
      let isEven = true
      for (let vertex = 0; vertex < this.#graph.size; vertex++) {
        if (!this.#isTooMuch(vertex)) continue
        isEven = false
        const to = this.#bestRoom(vertex)
        if (to >= 0) this.#move(vertex, to)
      }
      if (isEven) return
    }
  }

  #improve(): boolean {
    let isBetter = false
    for (let vertex = 0; vertex < this.#graph.size; vertex++) {
      const own = this.#parts[vertex] as number
      this.#look(vertex)
      const held = this.#bonds[own] as number
      let best = -1
      let most = held
      for (const part of this.#near) {
        const bond = this.#bonds[part] as number
        if (part === own || bond < most || !this.#hasRoom(vertex, part)) continue
        // Among equals only what makes the parts more even, so that it ends.
        if (bond === most && !(best < 0 && this.#isLighter(vertex, part, own))) continue
        best = part
        most = bond
      }
      if (best < 0) continue
      this.#move(vertex, best)
      if (most > held) isBetter = true
    }
    return isBetter
  }

  /** The part with the strongest bond that has room; without bonds, the emptiest. */
  #bestRoom(vertex: number): number {
    this.#look(vertex)
    const own = this.#parts[vertex] as number
    let best = -1
    for (let part = 0; part < this.#count; part++) {
      if (part === own || !this.#hasRoom(vertex, part)) continue
      if (best < 0) best = part
      const more = (this.#bonds[part] as number) - (this.#bonds[best] as number)
      if (more > 0 || (more === 0 && this.#fill(vertex, part) < this.#fill(vertex, best))) best = part
    }
    return best
  }

  #look(vertex: number): void {
    const { offsets, neighbours, bonds } = this.#graph
    for (const part of this.#near) this.#bonds[part] = 0
    this.#near = []
    for (let i = offsets[vertex] as number; i < (offsets[vertex + 1] as number); i++) {
      const part = this.#parts[neighbours[i] as number] as number
      if (this.#bonds[part] === 0) this.#near.push(part)
      this.#bonds[part]! += bonds[i] as number
    }
  }

  #isTooMuch(vertex: number): boolean {
    const own = this.#parts[vertex] as number
    return this.#some(
      vertex,
      (band, at) => band > 0 && (this.#loads[at] as number) > (this.#limits[at] as number),
      own,
    )
  }

  #hasRoom(vertex: number, part: number): boolean {
    return !this.#some(
      vertex,
      (weight, at) => weight > 0 && (this.#loads[at] as number) + weight > (this.#limits[at] as number),
      part,
    )
  }

  /** How full the part is in the band of the vertex where it is fullest. */
  #fill(vertex: number, part: number): number {
    let most = 0
    this.#some(
      vertex,
      (weight, at) => {
        if (weight > 0) most = Math.max(most, (this.#loads[at] as number) / (this.#limits[at] as number))
        return false
      },
      part,
    )
    return most
  }

  #isLighter(vertex: number, part: number, own: number): boolean {
    const { bands, weights } = this.#graph
    for (let band = 0; band < bands; band++) {
      const weight = weights[vertex * bands + band] as number
      if (weight === 0) continue
      const there = (this.#loads[part * bands + band] as number) + weight
      if (there > (this.#loads[own * bands + band] as number) - weight) return false
    }
    return true
  }

  #some(vertex: number, holds: (weight: number, at: number) => boolean, part: number): boolean {
    const { bands, weights } = this.#graph
    for (let band = 0; band < bands; band++) {
      if (holds(weights[vertex * bands + band] as number, part * bands + band)) return true
    }
    return false
  }

  #move(vertex: number, to: number): void {
    const { bands, weights } = this.#graph
    const from = this.#parts[vertex] as number
    this.#parts[vertex] = to
    for (let band = 0; band < bands; band++) {
      const weight = weights[vertex * bands + band] as number
      this.#loads[from * bands + band]! -= weight
      this.#loads[to * bands + band]! += weight
    }
  }
}
