import { Load } from './load.ts'
import type { Of, RecordedFile, RecordedRun, RecordedTask } from './recorded-run.ts'

/** What a recorded task did, apart from where: what another machine would do in its own time. */
export interface Split {
  /** Milliseconds that went neither into reading nor into writing, with those that went into starting it. */
  compute: number
  /** Bytes of what it read, in order. */
  read: number[]
  /** Bytes of what it wrote, in order. */
  written: number[]
}

type Way = 'read' | 'write'

/** Bytes that a task, or a move, had to bring through a device while it ran. */
interface Part {
  readonly who: Doer
  readonly bytes: number
  /** Bytes per millisecond that the device has for all. */
  readonly rate: number
  /** Milliseconds that it took. */
  time: number
}

interface Doer {
  readonly from: number
  readonly to: number
  readonly length: number
  parts: Part[]
}

/** The estimate settles quickly: each round corrects what one hinders the other by. */
const ROUNDS = 12

/** Tasks of a kind whose bytes would have needed so much more than their time had them from memory. */
const TOO_FAST = 1.25

/**
 * Takes the time of each recorded task apart. A task that brought bytes through a device needed its bytes over
 * the bandwidth, and longer by what others had there meanwhile; the rest of its time it computed. How long the
 * others took there follows in the same way, so this is repeated until it agrees.
 */
export function splitTimes(run: RecordedRun): Map<number, Split> {
  const amounts = new Amounts(run)
  const pipes = new Map<string, Part[]>()
  const doers = new Map<number, Doer>()
  const add = (who: Doer, device: number | null, way: Way, bytes: number): void => {
    const rate = device === null ? null : rateOf(run.facts, device, way)
    if (bytes <= 0 || rate === null || who.length <= 0) return
    const part: Part = { who, bytes, rate, time: who.length }
    who.parts.push(part)
    const key = `${device} ${way}`
    const pipe = pipes.get(key)
    if (pipe) pipe.push(part)
    else pipes.set(key, [part])
  }
  for (const task of run.tasks) {
    const { startedAt, endedAt, blocked } = task
    const who = { from: startedAt, to: endedAt, length: endedAt - startedAt - blocked, parts: [] }
    doers.set(task.id, who)
    for (const { device, way, bytes } of amounts.parts(task)) add(who, device, way, bytes)
  }
  for (const { from, to, bytes, startedAt, endedAt } of run.moves) {
    const who = { from: startedAt, to: endedAt, length: endedAt - startedAt, parts: [] }
    add(who, from, 'read', bytes)
    add(who, to, 'write', bytes)
  }
  settle([...pipes.values()])
  const splits = new Map<number, Split>()
  for (const task of run.tasks) {
    const { length, parts } = doers.get(task.id) as Doer
    const moving = parts.reduce((sum, { time }) => sum + time, 0)
    const busy = (task.usage?.cpuMs ?? 0) / task.cpus
    const compute = Math.max(0, length - moving, Math.min(busy, length)) + task.delay
    splits.set(task.id, { compute, read: amounts.read(task), written: amounts.written(task) })
  }
  return splits
}

function settle(pipes: readonly Part[][]): void {
  const loads = pipes.map(parts => new Load(parts.map(({ who }) => who)))
  for (let round = 0; round < ROUNDS; round++) {
    const shares = pipes.map(parts => parts.map(({ time, who }) => time / who.length))
    pipes.forEach((parts, i) => {
      const means = (loads[i] as Load).means(shares[i] as number[])
      parts.forEach((part, j) => {
        const others = Math.max(0, (means[j] as number) - (shares[i]?.[j] as number))
        part.time = (part.bytes / part.rate) * (1 + others)
      })
    })
    for (const parts of pipes) for (const { who } of parts) limit(who)
  }
}

/** A task cannot move bytes for longer than it runs. */
function limit({ parts, length }: Doer): void {
  const time = parts.reduce((sum, part) => sum + part.time, 0)
  if (time <= length) return
  for (const part of parts) part.time *= length / time
}

/** How many bytes tasks brought through devices, and what of it came from memory. */
class Amounts {
  readonly #run: RecordedRun
  readonly #made = new Set<number>()
  /** Kinds that read, or wrote, faster than their devices can. */
  readonly #fast = new Set<string>()

  constructor(run: RecordedRun) {
    this.#run = run
    for (const { writes } of run.tasks) for (const version of writes) this.#made.add(version)
    const needed = new Map<string, { device: number; time: number }>()
    for (const task of run.tasks) {
      for (const { device, way, bytes } of this.parts(task)) {
        const rate = device === null ? null : rateOf(run.facts, device, way)
        if (rate === null) continue
        const key = keyOf(task, way)
        const sum = needed.get(key) ?? { device: 0, time: 0 }
        sum.device += bytes / rate
        sum.time += task.endedAt - task.startedAt - task.blocked
        needed.set(key, sum)
      }
    }
    for (const [key, { device, time }] of needed) if (device > TOO_FAST * time) this.#fast.add(key)
  }

  /** What passed devices while the task ran. */
  parts(task: RecordedTask): { device: number | null; way: Way; bytes: number }[] {
    const parts: { device: number | null; way: Way; bytes: number }[] = []
    const { usage } = task
    const sizes = this.read(task)
    const total = sum(sizes)
    task.reads.forEach((version, i) => {
      const bytes = sizes[i] as number
      // What the system counted is right; else what a task of the run made is still in memory.
      const share = usage
        ? Math.min(1, usage.readBytes / Math.max(1, total))
        : this.#made.has(version)
          ? 0
          : 1
      parts.push({ device: this.#deviceOf(version), way: 'read', bytes: bytes * share })
    })
    const written = this.written(task)
    task.writes.forEach((version, i) => {
      parts.push({ device: this.#deviceOf(version), way: 'write', bytes: written[i] as number })
    })
    return parts
  }

  read(task: RecordedTask): number[] {
    if (this.#fast.has(keyOf(task, 'read'))) return task.reads.map(() => 0)
    const sizes = task.reads.map(version => this.#file(version)?.bytes ?? 0)
    const { usage } = task
    if (!usage) return sizes
    const share = Math.min(1, usage.askedBytes / Math.max(1, sum(sizes)))
    return sizes.map(bytes => bytes * share)
  }

  written(task: RecordedTask): number[] {
    if (this.#fast.has(keyOf(task, 'write'))) return task.writes.map(() => 0)
    return task.writes.map(version => this.#file(version)?.bytes ?? 0)
  }

  #file(version: number): RecordedFile | undefined {
    return this.#run.files.get(version)
  }

  #deviceOf(version: number): number | null {
    const file = this.#file(version)
    if (!file) return null
    return file.device ?? deviceAt(this.#run.facts, file.path)
  }
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0)
const keyOf = ({ kind }: RecordedTask, way: Way): string => `${kind} ${way}`

/** Bytes per millisecond; null if unknown. */
function rateOf({ devices = [] }: Of<'run-started'>, device: number, way: Way): number | null {
  const rate = devices[device]?.[way]
  return rate ? rate / 1000 : null
}

/** The device whose folder the path is in: of several, the innermost. */
export function deviceAt({ devices = [] }: Of<'run-started'>, path: string | null): number | null {
  let best: number | null = null
  if (path === null) return null
  devices.forEach((device, i) => {
    if (!isInside(device.path, path)) return
    if (best === null || device.path.length > (devices[best]?.path.length ?? 0)) best = i
  })
  return best
}

export const isInside = (folder: string, path: string): boolean =>
  path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
