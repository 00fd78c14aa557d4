import { ids, sizes, times } from './columns.ts'

/** What is known of every version of data: who makes it, who reads it, how large it is, where it lies. */
export class Versions {
  readonly makers = ids()
  readonly madeAt = times()
  readonly bytes = sizes()
  readonly devices = ids()
  /** Tasks that read it and have not ended. */
  readonly openReaders = sizes()
  readonly paths = new Map<number, string>()
  /** Versions with a size, for the list of the largest. */
  readonly sized = new Set<number>()
  /** Large values, with the node that alone has it, or -1. */
  readonly values = new Map<number, number>()
  /** What they take, and have taken at most. */
  valueBytes = 0
  mostValueBytes = 0
  readonly #latestOfPath = new Map<string, number>()
  /** Readers of a version: a chain of entries. */
  readonly #heads = ids()
  readonly #next = ids()
  readonly #tasks = ids()
  #entries = 0

  read(version: number, task: number): void {
    const entry = this.#entries++
    this.#tasks.set(entry, task)
    this.#next.set(entry, this.#heads.get(version))
    this.#heads.set(version, entry)
    this.openReaders.add(version, 1)
  }

  name(version: number, path: string): void {
    this.paths.set(version, path)
    const latest = this.#latestOfPath.get(path)
    if (latest === undefined || latest < version) this.#latestOfPath.set(path, version)
  }

  made(version: number, at: number, bytes: number): void {
    this.madeAt.set(version, at)
    if (bytes <= 0) return
    this.bytes.set(version, bytes)
    this.sized.add(version)
  }

  readersOf(version: number, limit: number): number[] {
    const tasks: number[] = []
    for (let at = this.#heads.get(version); at >= 0 && tasks.length < limit; at = this.#next.get(at))
      tasks.push(this.#tasks.get(at))
    return tasks.toReversed()
  }

  /** A value is in memory, on this node only if there is one; 0 bytes: not any more. */
  value(version: number, at: number, bytes: number, node: number): void {
    if (this.values.delete(version)) this.valueBytes -= this.bytes.get(version)
    this.sized.delete(version)
    if (bytes <= 0) return
    this.made(version, at, bytes)
    this.values.set(version, node)
    this.valueBytes += bytes
    this.mostValueBytes = Math.max(this.mostValueBytes, this.valueBytes)
  }

  /** The run has ended, and with it all values in memory. */
  end(): void {
    for (const version of this.values.keys()) this.sized.delete(version)
    this.values.clear()
    this.valueBytes = 0
  }

  /** Its file was deleted. */
  remove(version: number): void {
    this.sized.delete(version)
    this.devices.set(version, -1)
  }

  /** A value in memory, a file that tasks still read, or the last version of its path. */
  isAlive(version: number): boolean {
    if (this.values.has(version) || this.openReaders.get(version) > 0) return true
    const path = this.paths.get(version)
    return path !== undefined && this.#latestOfPath.get(path) === version
  }

  latestOf(path: string): number | undefined {
    return this.#latestOfPath.get(path)
  }

  nameOf(version: number): string {
    return this.paths.get(version) ?? `value ${version}`
  }
}
