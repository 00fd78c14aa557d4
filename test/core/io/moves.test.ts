import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Datum, Version } from '../../../src/core/data/datum.ts'
import type { Move } from '../../../src/core/io/task-io.ts'
import type { Task } from '../../../src/core/tasks/task.ts'
import { IoRig, MB, device, devicesOf } from './io-rig.ts'
import type { IoRigOptions } from './io-rig.ts'

const layers = [
  device('nvme', 60, { capacity: 100 }),
  device('ssd', 30, { capacity: 1000 }),
  device('pfs', 10, { capacity: 10_000 }),
]

const rigWith = (options: IoRigOptions): IoRig => new IoRig({ storage: layers, ...options })

const movesOf = (rig: IoRig): Move[] => rig.said.flatMap(one => (one.type === 'move' ? [one.move] : []))
const pathsOf = (rig: IoRig): string[] => movesOf(rig).map(({ from, to }) => `${from.name} -> ${to.name}`)

/** Writes a file and lets the writer end. */
function written(rig: IoRig, size: number, file: Datum = rig.file()): Version {
  const task = rig.write('w', { size }, {}, file)
  rig.go()
  rig.finish(task, rig.now + 1, size)
  return file.current
}

test('Algorithm 6: what no task reads should move to the lowest layer that has room, and free its place', () => {
  const rig = rigWith({ flush: 'idle' })
  const version = written(rig, 40)
  assert.deepEqual(rig.go(), [])
  assert.deepEqual(pathsOf(rig), ['nvme -> pfs'])
  assert.equal(rig.device('nvme').used, 40, 'until it has arrived it takes room in both places')
  assert.equal(rig.device('pfs').used, 40)
  assert.equal(version.place?.device.name, 'nvme', 'and is read where it was')
  rig.engine.io.moved(movesOf(rig)[0] as Move, rig.now)
  assert.equal(rig.device('nvme').used, 0)
  assert.equal(version.place?.device.name, 'pfs')
  assert.deepEqual(
    rig.of('move').map(({ phase }) => phase),
    ['started', 'done'],
  )
})

test('however many files are not read, all should move, also behind some that have nowhere to go', () => {
  const rig = new IoRig({
    storage: [device('nvme', 60, { capacity: 1000 }), device('pfs', 10)],
    flush: 'idle',
  })
  const files = Array.from({ length: 40 }, () => rig.file())
  // None may move before all are there.
  const busy = rig.write('busy', { bandwidth: 1 * MB, device: 'pfs' })
  for (const [i, file] of files.entries()) {
    const task = rig.write('w', { size: 10, device: i < 20 ? 'pfs' : 'nvme' }, {}, file)
    rig.go()
    rig.finish(task, rig.now + 1, 10)
  }
  rig.finish(busy)
  for (let moved = 0; moved < movesOf(rig).length || moved === 0; moved++) {
    rig.go()
    const move = movesOf(rig)[moved]
    if (!move) break
    rig.engine.io.moved(move, rig.now)
    rig.go()
  }
  assert.deepEqual(
    files.map(({ current }) => current.place?.device.name),
    files.map(() => 'pfs'),
  )
  assert.equal(movesOf(rig).length, 20)
})

test('what will be read should stay, and go when its last reader has ended', () => {
  const rig = rigWith({ flush: 'idle' })
  const file = rig.file()
  const writer = rig.write('w', { size: 40 }, {}, file)
  const reader = rig.read('r', {}, file)
  rig.go()
  rig.finish(writer, 1, 40)
  assert.deepEqual(rig.go(), [reader])
  assert.deepEqual(movesOf(rig), [])
  rig.finish(reader)
  rig.go()
  assert.deepEqual(pathsOf(rig), ['nvme -> pfs'])
})

test('with idle, nothing should move while I/O tasks run; with always, it should use what they leave over', () => {
  const idle = rigWith({ flush: 'idle' })
  written(idle, 40)
  idle.write('busy', { bandwidth: 20 * MB, size: 1 })
  idle.go()
  assert.deepEqual(movesOf(idle), [])
  const always = rigWith({ flush: 'always' })
  written(always, 40)
  always.many(2, 'busy', { bandwidth: 4 * MB, device: 'pfs' })
  const busy = always.go()
  const [move] = movesOf(always) as [Move]
  assert.equal(move.rate, 2 * MB, 'the slower of what is left of reading nvme and of writing pfs')
  always.finish(busy[0] as Task)
  always.go()
  assert.equal(move.rate, 6 * MB)
  assert(always.said.some(one => one.type === 'pace'))
})

test('moves should never take what a task asks for', () => {
  const rig = rigWith({ flush: 'always' })
  written(rig, 40)
  rig.go()
  const [move] = movesOf(rig) as [Move]
  assert.equal(move.rate, 10 * MB)
  const task = rig.write('io', { bandwidth: 10 * MB, device: 'pfs' })
  assert.deepEqual(rig.go(), [task])
  assert.equal(move.rate, 0, 'it pauses')
})

test('a full layer should be emptied, so that the next tasks find room there', () => {
  const rig = rigWith({ flush: 'always' })
  for (let i = 0; i < 2; i++) written(rig, 50)
  const [first, second] = movesOf(rig) as [Move, Move]
  assert(first)
  const low = rig.write('next', { size: 50 })
  rig.go()
  assert.deepEqual(devicesOf([low]), ['ssd'])
  rig.engine.io.moved(first, rig.now)
  if (second) rig.engine.io.moved(second, rig.now)
  const high = rig.write('next', { size: 50 })
  rig.go()
  assert.deepEqual(devicesOf([high]), ['nvme'])
})

test('a move that failed should leave the datum where it was, and not be tried again to the same place', () => {
  const rig = rigWith({ flush: 'idle' })
  const version = written(rig, 40)
  rig.go()
  rig.engine.io.moveFailed(movesOf(rig)[0] as Move, 'no space', rig.now)
  assert.equal(version.place?.device.name, 'nvme')
  assert.equal(rig.device('pfs').used, 0)
  rig.go()
  assert.deepEqual(pathsOf(rig), ['nvme -> pfs', 'nvme -> ssd'])
  // One that is not needed any more is told as something else.
  rig.engine.io.moveFailed(movesOf(rig)[1] as Move, 'not needed', rig.now, 'dropped')
  assert.deepEqual(
    rig.of('move').map(({ phase }) => phase),
    ['started', 'failed', 'started', 'dropped'],
  )
})

test('a datum that is removed while it moves should be discarded after that, and once', () => {
  const rig = rigWith({ flush: 'idle' })
  const file = rig.file()
  const version = written(rig, 40, file)
  rig.go()
  rig.engine.remove(file, rig.now)
  rig.go()
  const discards = (): number => rig.said.filter(one => one.type === 'discard').length
  assert.equal(discards(), 0)
  rig.engine.io.moved(movesOf(rig)[0] as Move, rig.now)
  rig.go()
  assert.equal(discards(), 1)
  rig.engine.io.gone(version)
  assert.deepEqual(
    rig.engine.io.devices.map(({ used }) => used),
    [0, 0, 0],
  )
})

test('a reader that comes during a flush should read the old copy, and afterwards the new one', () => {
  const rig = rigWith({ flush: 'idle' })
  const file = rig.file()
  written(rig, 40, file)
  rig.go()
  const early = rig.read('r', { bandwidth: 1 * MB }, file)
  rig.go()
  assert.deepEqual(devicesOf([early]), ['nvme'])
  const late = rig.read('r', { bandwidth: 60 * MB }, file)
  rig.go()
  assert.equal(late.state, 'ready')
  rig.engine.io.moved(movesOf(rig)[0] as Move, rig.now)
  rig.finish(early)
  rig.go()
  assert.equal(late.io?.pinned?.name, 'pfs', 'it is looked for where it is now')
})

test('prefetch: what ready tasks read should move up when there is room, and the original of the user should stay', () => {
  const rig = rigWith({ prefetch: true, ioExecutors: 1 })
  const input = rig.file()
  rig.engine.io.locate(input.current, rig.device('pfs'), 30)
  const busy = rig.write('busy', { bandwidth: 1 * MB })
  rig.go()
  const reader = rig.read('r', {}, input)
  rig.go()
  const [move] = movesOf(rig) as [Move]
  assert.equal(`${move.from.name} -> ${move.to.name}`, 'pfs -> nvme')
  assert.equal(move.keepsOriginal, true)
  rig.engine.io.moved(move, rig.now)
  rig.finish(busy)
  assert.deepEqual(devicesOf(rig.go()), ['nvme'])
  assert.equal(rig.device('nvme').used, 30)
  rig.finish(reader)
  rig.engine.io.gone(input.current)
  assert.equal(rig.device('nvme').used, 0)
})

test('prefetch: a copy that arrives after its last reader has ended should go again', () => {
  const rig = rigWith({ prefetch: true, flush: 'idle', ioExecutors: 1 })
  const input = rig.file()
  rig.engine.io.locate(input.current, rig.device('pfs'), 30)
  const busy = rig.write('busy', { bandwidth: 1 * MB })
  rig.go()
  const reader = rig.read('r', {}, input)
  rig.go()
  const [up] = movesOf(rig) as [Move]
  rig.finish(busy)
  assert.deepEqual(devicesOf(rig.go()), ['pfs'], 'the copy is not there yet')
  rig.finish(reader)
  rig.go()
  rig.engine.io.moved(up, rig.now)
  rig.go()
  const moves = (): Move[] => movesOf(rig).filter(({ version }) => version === input.current)
  assert.deepEqual(
    moves().map(({ from, to }) => `${from.name} -> ${to.name}`),
    ['pfs -> nvme', 'nvme -> pfs'],
  )
  rig.engine.io.moved(moves()[1] as Move, rig.now)
  rig.engine.io.putBack(input.current)
  rig.go()
  assert.equal(moves().length, 2)
  assert.equal(rig.device('nvme').used, 0)
})

test('prefetch: nothing should move up where there is not room for twice as much', () => {
  const rig = rigWith({ prefetch: true, ioExecutors: 1, storage: [layers[0]!, layers[2]!] })
  const input = rig.file()
  rig.engine.io.locate(input.current, rig.device('pfs'), 60)
  rig.write('busy')
  rig.go()
  rig.read('r', {}, input)
  rig.go()
  assert.deepEqual(movesOf(rig), [])
})
