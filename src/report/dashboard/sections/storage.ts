import type { RunEvent } from '../../../core/events.ts'
import { clean } from '../../text.ts'
import type { RunModel } from '../state/run-model.ts'
import { inFolder } from './data.ts'
import type { DeviceHistory } from '../state/storage.ts'
import type { DeviceRow, MoveRow, Points, StorageSection, TunerRow } from '../protocol.ts'

const SHOWN_MOVES = 20
const SHOWN_CONTENT = 8

export function storageSection(model: RunModel, now: number): StorageSection {
  const { storage } = model
  return {
    devices: storage.devices.map(device => deviceRow(device, model, now)),
    moving: [...storage.moving.values()].slice(0, SHOWN_MOVES).map(move => moveRow(move, model)),
    recent: storage.recentMoves
      .slice(-SHOWN_MOVES)
      .toReversed()
      .map(move => moveRow(move, model)),
    moved: storage.moved,
    tuners: tuners(model),
    io: model.run?.io ?? null,
  }
}

function deviceRow(device: DeviceHistory, model: RunModel, now: number): DeviceRow {
  const { facts, state } = device
  // Amounts per millisecond become bytes per second.
  const written = perSecond(device.written.points(now))
  const read = perSecond(device.readIn.points(now))
  const content = [...device.content].map(([kind, entry]) => ({ kind: clean(kind), ...entry }))
  return {
    name: clean(facts.name),
    path: clean(facts.path),
    node: facts.node === null ? null : clean(model.nodes[facts.node]?.name ?? `node ${facts.node}`),
    limitRead: facts.read,
    limitWrite: facts.write,
    capacity: facts.capacity,
    used: state?.used ?? 0,
    running: state?.running ?? 0,
    waiting: state?.waiting ?? 0,
    failure: device.failure === null ? null : clean(device.failure),
    peakRead: peak(read),
    peakWrite: peak(written),
    written,
    read,
    givenWrite: device.givenWrite.points(now),
    givenRead: device.givenRead.points(now),
    usedOver: device.used.points(now),
    queue: device.waiting.points(now),
    content: content.sort((a, b) => b.bytes - a.bytes).slice(0, SHOWN_CONTENT),
  }
}

const perSecond = ({ width, values }: Points): Points => ({
  width,
  values: values.map(value => Math.round(value * 1000)),
})

/** The last bucket may be only a moment long. */
const peak = ({ values }: Points): number =>
  Math.max(0, ...(values.length > 1 ? values.slice(0, -1) : values))

function moveRow(move: Extract<RunEvent, { type: 'move' }>, model: RunModel): MoveRow {
  const device = (index: number): string =>
    clean(model.storage.devices[index]?.facts.name ?? `device ${index}`)
  return {
    at: move.at,
    why: move.why,
    phase: move.phase,
    reason: move.reason === undefined ? null : clean(move.reason),
    file: clean(inFolder(model.versions.nameOf(move.version), model.run?.cwd ?? '')),
    from: device(move.from),
    to: device(move.to),
    bytes: move.bytes,
  }
}

function tuners(model: RunModel): TunerRow[] {
  const rows = new Map<string, TunerRow>()
  const rowOf = (kind: number, device: number): TunerRow => {
    const key = `${kind}/${device}`
    let row = rows.get(key)
    if (!row) {
      const name = model.storage.devices[device]?.facts.name ?? `device ${device}`
      row = { kind: clean(model.kindName(kind)), device: clean(name), trials: [], verdict: null }
      rows.set(key, row)
    }
    return row
  }
  for (const { kind, device, concurrency, bandwidth, mean, at } of model.storage.trials)
    rowOf(kind, device).trials.push({ concurrency, bandwidth, mean, at })
  for (const verdict of model.storage.verdicts.values()) {
    const { kind, device, concurrency, bandwidth, learned, waiting = null, reason } = verdict
    rowOf(kind, device).verdict = { concurrency, bandwidth, learned, waiting, reason: clean(reason) }
  }
  return [...rows.values()]
}
