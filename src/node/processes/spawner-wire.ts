/** Messages between coordinator and `millrace-spawn`; the other side, and the layout, is native/spawner.h. */
import type { CommandRequest } from './command-process.ts'

/** What is limited, by the number that the system has for it. */
export type NumberedLimits = readonly (readonly [resource: number, value: number])[]

/** The lane of programs that do not wait for each other. */
const NO_LANE = 0xff_ff_ff_ff

export interface SpawnEnded {
  exitCode: number | null
  /** By number; 0 for none. */
  signal: number
  printed: boolean
  /** It was killed, and the system killed some process for lack of memory while it ran. */
  starved: boolean
  /** Milliseconds on the clock of `process.hrtime`. */
  beganAt: number
  endedAt: number
  /** Milliseconds. */
  cpu: number
  /** Bytes. */
  peak: number
  asked: number
  written: number
  deviceRead: number
  deviceWritten: number
}

export const STAGES = ['fork', 'cwd', 'stdin', 'stdout', 'stderr', 'log', 'limits', 'exec'] as const

export interface SpawnRefused {
  stage: (typeof STAGES)[number]
  errno: number
}

const ENVIRONMENTS = 256
const LENGTH = 4

export class RequestWriter {
  #bytes = Buffer.allocUnsafeSlow(1 << 16)
  #view = viewOf(this.#bytes)
  #at = 0
  /** Environments that the other side has, by their text; commands of a run mostly share one. */
  readonly #environments = new Map<string, number>()
  #nextEnvironment = 0
  /** The same object as last time has the same variables: most commands have it. */
  #last: { env: Readonly<Record<string, string>>; slot: number } | null = null

  /** What has been written since the last time, or null. */
  take(): Buffer | null {
    if (this.#at === 0) return null
    const taken = Buffer.from(this.#bytes.subarray(0, this.#at))
    this.#at = 0
    return taken
  }

  run(id: number, request: CommandRequest, limits: NumberedLimits): void {
    const environment = this.#environment(request.env)
    const begin = this.#begin('R')
    this.#u32(id)
    this.#u32(request.lane ?? NO_LANE)
    this.#u32(environment)
    this.#cpus(request.cpus ?? [])
    this.#u8(limits.length)
    for (const [resource, value] of limits) {
      this.#u8(resource)
      this.#u64(BigInt(Math.floor(value)))
    }
    this.#text(request.cwd)
    this.#text(request.stdin ?? '')
    this.#text(request.stdout ?? '')
    this.#text(request.stderr ?? '')
    this.#text(request.log ?? '')
    this.#u32(request.argv.length)
    for (const word of request.argv) this.#text(word)
    this.#end(begin)
  }

  kill(id: number, signal: number): void {
    const begin = this.#begin('K')
    this.#u32(id)
    this.#u32(signal)
    this.#end(begin)
  }

  /** It is not to be run, if it has not begun. */
  back(id: number): void {
    const begin = this.#begin('B')
    this.#u32(id)
    this.#end(begin)
  }

  quit(): void {
    this.#end(this.#begin('Q'))
  }

  #environment(env: Readonly<Record<string, string>>): number {
    if (this.#last?.env === env) return this.#last.slot
    const slot = this.#slotOf(env)
    this.#last = { env, slot }
    return slot
  }

  #slotOf(env: Readonly<Record<string, string>>): number {
    const lines: string[] = []
    for (const name in env) lines.push(`${name}=${env[name]}`)
    const text = lines.join('\0')
    const known = this.#environments.get(text)
    if (known !== undefined) return known
    const slot = this.#nextEnvironment++ % ENVIRONMENTS
    if (this.#environments.size >= ENVIRONMENTS) {
      const [oldest] = this.#environments.keys()
      this.#environments.delete(oldest as string)
    }
    this.#environments.set(text, slot)
    const begin = this.#begin('E')
    this.#u32(slot)
    this.#u32(lines.length)
    for (const line of lines) this.#text(line)
    this.#end(begin)
    return slot
  }

  #begin(type: string): number {
    const begin = this.#at
    this.#ensure(64)
    this.#at += LENGTH
    this.#u8(type.charCodeAt(0))
    return begin
  }

  #end(begin: number): void {
    this.#view.setUint32(begin, this.#at - begin - LENGTH, true)
  }

  #u8(value: number): void {
    this.#ensure(1)
    this.#bytes[this.#at++] = value
  }

  #u16(value: number): void {
    this.#ensure(2)
    this.#view.setUint16(this.#at, value, true)
    this.#at += 2
  }

  #u32(value: number): void {
    this.#ensure(4)
    this.#view.setUint32(this.#at, value, true)
    this.#at += 4
  }

  #u64(value: bigint): void {
    this.#ensure(8)
    this.#view.setBigUint64(this.#at, value, true)
    this.#at += 8
  }

  /** The system takes no more than 1024 of them. */
  #cpus(cpus: readonly number[]): void {
    this.#u16(cpus.length)
    for (const cpu of cpus) this.#u16(cpu)
  }

  #text(text: string): void {
    if (text === '') return this.#u8(0)
    this.#ensure(text.length * 3 + 1)
    this.#at += this.#bytes.write(text, this.#at, 'utf8')
    this.#bytes[this.#at++] = 0
  }

  #ensure(room: number): void {
    if (this.#at + room <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow((this.#at + room) * 2)
    this.#bytes.copy(grown, 0, 0, this.#at)
    this.#bytes = grown
    this.#view = viewOf(grown)
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer): DataView => new DataView(buffer, byteOffset, length)

export interface ReplyListener {
  ended(id: number, ended: SpawnEnded): void
  refused(id: number, refused: SpawnRefused): void
  cameBack(id: number): void
}

/** Reads whole messages and returns how many bytes they were. */
export function readReplies(bytes: Buffer, listener: ReplyListener): number {
  let at = 0
  while (bytes.length - at >= LENGTH) {
    const size = bytes.readUInt32LE(at)
    if (bytes.length - at - LENGTH < size) break
    const type = bytes[at + LENGTH]
    const id = bytes.readUInt32LE(at + LENGTH + 1)
    const fields = at + LENGTH + 5
    if (type === 0x58) listener.ended(id, readEnded(bytes, fields))
    else if (type === 0x43) listener.cameBack(id)
    else {
      const stage = STAGES[bytes[fields] ?? 0] ?? 'fork'
      listener.refused(id, { stage, errno: bytes.readInt32LE(fields + 1) })
    }
    at += LENGTH + size
  }
  return at
}

function readEnded(bytes: Buffer, at: number): SpawnEnded {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, ENDED)
  const exitCode = view.getInt32(0, true)
  return {
    exitCode: exitCode < 0 ? null : exitCode,
    signal: view.getInt32(4, true),
    printed: view.getUint8(8) !== 0,
    starved: view.getUint8(9) !== 0,
    beganAt: u64(view, 10) / 1e6,
    endedAt: u64(view, 18) / 1e6,
    // The sum of two fractions would not be one that the journal can write shortly.
    cpu: (u64(view, 26) + u64(view, 34)) / 1e3,
    peak: u64(view, 42),
    asked: u64(view, 50),
    written: u64(view, 58),
    deviceRead: u64(view, 66),
    deviceWritten: u64(view, 74),
  }
}

/** Size of the record of an exit, in bytes. */
const ENDED = 82

const u64 = (view: DataView, at: number): number =>
  view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32
