import type { DeviceFacts, RunEvent } from '../../../core/events.ts'
import { Series } from './series.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

/** Moves and trials that are kept for the page. */
const KEPT_MOVES = 50
const KEPT_TRIALS = 400

/** One device over time. */
export class DeviceHistory {
  readonly facts: DeviceFacts
  state: Of<'device'> | null = null
  failure: string | null = null
  /** The run has ended and left nothing there. */
  isEmptied = false
  /** What was moved, from the sizes of files and the times of the tasks that wrote or read them. */
  readonly written = new Series()
  readonly readIn = new Series()
  /** What was given out to tasks, in bytes per second. */
  readonly givenWrite = new Series()
  readonly givenRead = new Series()
  readonly used = new Series()
  readonly running = new Series()
  readonly waiting = new Series()
  /** Bytes of versions that lie there, by the extension of their files. */
  readonly content = new Map<string, { files: number; bytes: number }>()

  constructor(facts: DeviceFacts) {
    this.facts = facts
  }

  observe(event: Of<'device'>): void {
    this.state = event
    this.givenWrite.set(event.at, event.write)
    this.givenRead.set(event.at, event.read)
    this.used.set(event.at, event.used)
    this.running.set(event.at, event.running)
    this.waiting.set(event.at, event.waiting)
  }

  end(at: number): void {
    if (this.state) this.observe({ ...this.state, at, read: 0, write: 0, running: 0, waiting: 0 })
  }

  hold(path: string, bytes: number, sign: 1 | -1): void {
    const kind = /\.[\w-]{1,12}$/.exec(path)?.[0] ?? 'other'
    const entry = this.content.get(kind) ?? { files: 0, bytes: 0 }
    entry.files += sign
    entry.bytes += sign * bytes
    if (entry.files <= 0) this.content.delete(kind)
    else this.content.set(kind, entry)
  }
}

/** All devices, what moves between them, and what was learned about them. */
export class StorageHistory {
  readonly devices: DeviceHistory[] = []
  readonly moving = new Map<number, Of<'move'>>()
  readonly recentMoves: Of<'move'>[] = []
  readonly moved = { flush: { files: 0, bytes: 0 }, prefetch: { files: 0, bytes: 0 }, failed: 0, dropped: 0 }
  readonly trials: Of<'trial'>[] = []
  readonly verdicts = new Map<string, Of<'verdict'>>()

  start(facts: readonly DeviceFacts[]): void {
    for (const device of facts) this.devices.push(new DeviceHistory(device))
  }

  /** The run has ended: nothing runs or waits there, and what lay on a device for its time has gone to its place. */
  end(at: number): void {
    for (const device of this.devices) {
      device.end(at)
      if ((device.state?.used ?? 0) > 0) continue
      device.content.clear()
      device.isEmptied = true
    }
  }

  observe(event: Of<'device' | 'device-failed' | 'trial' | 'verdict' | 'move'>): void {
    switch (event.type) {
      case 'device':
        return this.devices[event.device]?.observe(event)
      case 'device-failed': {
        const device = this.devices[event.device]
        if (device) device.failure = event.reason
        return
      }
      case 'trial':
        if (this.trials.length < KEPT_TRIALS) this.trials.push(event)
        return
      case 'verdict':
        this.verdicts.set(`${event.kind}/${event.device}`, event)
        return
      case 'move':
        return this.#move(event)
    }
  }

  #move(event: Of<'move'>): void {
    if (event.phase === 'started') {
      this.moving.set(event.move, event)
      return
    }
    const began = this.moving.get(event.move)
    this.moving.delete(event.move)
    this.recentMoves.push(event)
    if (this.recentMoves.length > KEPT_MOVES) this.recentMoves.shift()
    if (event.phase !== 'done') {
      this.moved[event.phase]++
      return
    }
    const sum = this.moved[event.why]
    sum.files++
    sum.bytes += event.bytes
    const from = began?.at ?? event.at
    this.devices[event.from]?.readIn.spread(from, event.at, event.bytes)
    this.devices[event.to]?.written.spread(from, event.at, event.bytes)
  }
}
