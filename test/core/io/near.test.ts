import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Datum } from '../../../src/core/data/datum.ts'
import { demandOf } from '../../../src/core/tasks/demand.ts'
import { IoRig, MB, device } from './io-rig.ts'
import type { IoRigOptions } from './io-rig.ts'

const LARGE = 100 * MB

/** Four nodes with two devices each, unless told otherwise, and a file that lies on a device of one of them. */
function rigWith(options: IoRigOptions = {}, lying = 2): { rig: IoRig; input: Datum } {
  const rig = new IoRig({
    nodes: [{}, {}, {}, {}],
    storage: [device('nvram', 400), device('disk', 100)],
    ...options,
  })
  const input = rig.file()
  const on = rig.engine.io.devices.filter(({ node }) => node === lying).at(-1)
  if (on) rig.engine.io.locate(input.current, on, LARGE)
  return { rig, input }
}

/** An I/O task that reads the file and writes another. */
const convert = (rig: IoRig, input: Datum, wishes = {}): ReturnType<IoRig['submit']> =>
  rig.submit('convert', wishes, [
    { datum: input, mode: 'in' },
    { datum: rig.file(), mode: 'out' },
  ])

test('an I/O task that reads what a node has runs there, on its highest layer', () => {
  const { rig, input } = rigWith()
  const tasks = Array.from({ length: 5 }, () => convert(rig, input))
  rig.go()
  assert.deepEqual(
    tasks.map(task => [task.node, task.io?.device?.name]),
    Array.from({ length: 5 }, () => [2, 'nvram']),
  )
})

test('where the higher layer of the node is taken, it gets the lower one, and then another node', () => {
  const { rig, input } = rigWith({
    storage: [device('nvram', 400, { read: 4000 * MB }), device('disk', 200, { read: 4000 * MB })],
  })
  const tasks = Array.from({ length: 4 }, () => convert(rig, input, { bandwidth: 200 * MB }))
  rig.go()
  assert.deepEqual(
    tasks.slice(0, 3).map(task => [task.node, task.io?.device?.name]),
    [
      [2, 'nvram'],
      [2, 'nvram'],
      [2, 'disk'],
    ],
  )
  const last = tasks[3]!
  assert.deepEqual([last.state, last.io?.device?.name], ['running', 'nvram'])
  assert.notEqual(last.node, 2)
})

test('an I/O task does not wait for a node that is full', () => {
  const { rig, input } = rigWith({ ioExecutors: 2 })
  const tasks = Array.from({ length: 6 }, () => convert(rig, input))
  rig.go()
  assert(tasks.every(({ state }) => state === 'running'))
  assert.equal(tasks.filter(({ node }) => node === 2).length, 2)
})

test('of several inputs the node with most bytes counts', () => {
  const { rig, input } = rigWith()
  const small = rig.file()
  rig.engine.io.locate(
    small.current,
    rig.engine.io.devices.find(({ node }) => node === 1)!,
    1,
  )
  const task = rig.submit('join', {}, [
    { datum: small, mode: 'in' },
    { datum: input, mode: 'in' },
    { datum: rig.file(), mode: 'out' },
  ])
  rig.go()
  assert.equal(task.node, 2)
})

test('what lies on a shared device is as near to one node as to another', () => {
  const { rig } = rigWith({ storage: [device('pfs', 400, { shared: true })] })
  const input = rig.file()
  rig.engine.io.locate(input.current, rig.device('pfs'), LARGE)
  const tasks = Array.from({ length: 8 }, () => convert(rig, input))
  rig.go()
  assert.deepEqual(
    tasks.map(({ node }) => node).sort((a, b) => a - b),
    [0, 0, 1, 1, 2, 2, 3, 3],
  )
})

test('without devices an I/O task goes to the node where a large input was made, and a small one does not matter', () => {
  for (const [bytes, expected] of [
    [LARGE, [1, 1, 1, 1]],
    [100, [0, 1, 2, 3]],
  ] as const) {
    const { rig } = rigWith({ storage: [], sizeOf: ({ value }) => (value === undefined ? 0 : bytes) })
    const made = rig.file()
    const busy = rig.submit('busy', {}, [])
    const maker = rig.submit('make', {}, [{ datum: made, mode: 'out' }])
    rig.go()
    assert.equal(maker.node, 1)
    rig.finish(maker)
    rig.finish(busy)
    const tasks = Array.from({ length: 4 }, () => rig.read('read', {}, made))
    rig.go()
    assert.deepEqual(
      tasks.map(({ node }) => node).sort((a, b) => a - b),
      expected,
    )
  }
})

test('a compute task that writes to a device runs on the node whose device it reads from', () => {
  const { rig, input } = rigWith({ cpus: 2 })
  const storage = { bandwidth: 1, size: 0, device: null, direction: null }
  const demand = { ...demandOf(1, 0, []), storage }
  const tasks = Array.from({ length: 3 }, () =>
    rig.submit(
      'compute',
      {},
      [
        { datum: input, mode: 'in' },
        { datum: rig.file(), mode: 'out' },
      ],
      { demand: demand as ReturnType<typeof demandOf> },
    ),
  )
  rig.go()
  assert.deepEqual(
    tasks.map(({ node }) => node),
    [2, 2, 0],
  )
})

test('a node without devices is not better for a task that needs one', () => {
  const { rig } = rigWith({ nodes: [{ storage: [] }, {}], sizeOf: () => LARGE })
  const made = rig.file()
  const maker = rig.submit('make', {}, [{ datum: made, mode: 'out' }], { demand: demandOf(1, 0, []) })
  rig.go()
  assert.equal(maker.node, 0)
  rig.finish(maker)
  const task = convert(rig, made)
  rig.go()
  assert.equal(task.io?.home, 0)
  assert.deepEqual([task.node, task.io?.device?.name], [1, 'nvram'])
})
