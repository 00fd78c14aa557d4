/** Typed arrays that grow. Each holds one fact of all tasks, versions or slices: a million of them take megabytes. */

type Numbers = Float64Array | Float32Array | Int32Array | Uint16Array | Uint8Array

/** A column of numbers by id. What was never set is `empty`. */
export class Column<T extends Numbers> {
  values: T
  readonly #empty: number
  readonly #make: (size: number) => T

  constructor(make: (size: number) => T, empty = 0) {
    this.#make = make
    this.#empty = empty
    this.values = this.#filled(1024)
  }

  get(id: number): number {
    return this.values[id] ?? this.#empty
  }

  set(id: number, value: number): void {
    if (id >= this.values.length) this.#grow(id)
    this.values[id] = value
  }

  add(id: number, value: number): void {
    this.set(id, this.get(id) + value)
  }

  #grow(id: number): void {
    const old = this.values
    this.values = this.#filled(Math.max(old.length * 2, id + 1))
    this.values.set(old)
  }

  #filled(size: number): T {
    const values = this.#make(size)
    if (this.#empty !== 0) values.fill(this.#empty)
    return values
  }
}

export const times = (): Column<Float64Array> => new Column(size => new Float64Array(size), NaN)
export const sizes = (): Column<Float64Array> => new Column(size => new Float64Array(size))
export const ids = (): Column<Int32Array> => new Column(size => new Int32Array(size), -1)
export const bytes = (): Column<Uint8Array> => new Column(size => new Uint8Array(size))
