import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Datum } from '../../src/core/data/datum.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import type { DeviceModel, NodeModel } from '../../src/simulate/machine/platform.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import type { SimulateOptions } from '../../src/simulate/simulate.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'

const disk = (more: Partial<DeviceModel> = {}): DeviceModel => ({
  name: 'd',
  path: '/d',
  read: 100,
  write: 100,
  capacity: null,
  ...more,
})
const node = (more: Partial<NodeModel> = {}): NodeModel => ({
  name: 'n',
  cpus: 4,
  memory: 100,
  tags: [],
  storage: [disk()],
  ...more,
})

/** So many tasks at once that write so many bytes each. */
const writers = (count: number, bytes: number, io = false, folder = '/elsewhere'): Workload => ({
  name: 'writers',
  begin(simulation) {
    for (let i = 0; i < count; i++) {
      simulation.submit(
        { kind: simulation.kind('w'), demand: io ? ioDemandOf({ size: bytes }) : demandOf(1, 0, []) },
        [{ datum: new Datum(`${folder}/f${i}`, false, false), mode: 'out' }],
        { compute: 0, bytes: [bytes] },
      )
    }
  },
})

const run = async (workload: Workload, nodes: NodeModel[], more: Partial<SimulateOptions> = {}) => {
  const events: RunEvent[] = []
  const outcome = await simulate(workload, {
    platform: { nodes },
    observer: event => events.push(event),
    ...more,
  })
  return { ...outcome, events }
}

test('latency comes before each transfer, once', async () => {
  const { makespan } = await run(writers(1, 200), [node({ storage: [disk({ latency: 30 })] })])
  assert.equal(makespan, 0.03 + 2)
})

test('a shared file system is as fast as itself, or as the links of those who use it', async () => {
  const shared = [disk({ shared: true, write: 400 })]
  const nodes = (link: number): NodeModel[] => [
    node({ storage: shared, link }),
    node({ name: 'm', storage: shared, link }),
  ]
  // Four on each node: 800 bytes in all.
  assert.equal((await run(writers(8, 100), nodes(1000))).makespan, 2)
  assert.equal((await run(writers(8, 100), nodes(100))).makespan, 4)
})

test('a device that is full leaves what comes then to the next layer', async () => {
  const layers = [disk({ name: 'fast', path: '/fast', write: 200, capacity: 250 }), disk()]
  const { devices, events } = await run(writers(5, 100, true), [node({ storage: layers, ioExecutors: 9 })])
  assert.deepEqual(
    devices.map(({ name, written }) => [name, written]),
    [
      ['fast', 200],
      ['d', 300],
    ],
  )
  const starts = events.flatMap(event => (event.type === 'started' ? [event.device] : []))
  assert.deepEqual(starts, [0, 0, 1, 1, 1])
})

test('a file whose path is on a device is written there, another one at home', async () => {
  const storage = [disk(), disk({ name: 'slow', path: '/slow', write: 10 })]
  assert.equal((await run(writers(1, 100, false, '/slow/a'), [node({ storage })])).makespan, 10)
  assert.equal((await run(writers(1, 100, false, '/slower'), [node({ storage })])).makespan, 1)
})

test('a device that does not do what it is described to do takes its own time', async () => {
  const storage = [disk({ actual: { read: 50, write: 25 } })]
  assert.equal((await run(writers(1, 100), [node({ storage })])).makespan, 4)
})

test('a move between layers goes at the pace of the slower one, and its data are counted once', async () => {
  const layers = [disk({ name: 'fast', path: '/fast', write: 200, read: 200, capacity: 250 }), disk()]
  const nodes = [node({ storage: layers, ioExecutors: 9 })]
  const { devices, tasksEnded, makespan, events } = await run(writers(2, 100, true), nodes, { flush: 'idle' })
  assert.equal(tasksEnded, 1)
  assert.deepEqual(
    devices.map(({ read, written }) => [read, written]),
    [
      [200, 200],
      [0, 200],
    ],
  )
  assert(makespan >= 3 && makespan < 3.01, `${makespan} s`)
  const done = events.filter(event => event.type === 'move' && event.phase === 'done')
  assert.equal(done.length, 2)
})

test('what is committed and found has its size in the events', async () => {
  const { events } = await run(writers(2, 100), [node()])
  const sizes = events.flatMap(event => (event.type === 'committed' ? [event.bytes] : []))
  assert.deepEqual(sizes, [100, 100])
})

test('thousands of streams on one device cost a number of clock steps in proportion to them', async () => {
  const steps = async (count: number): Promise<number> => {
    let looked = 0
    const workload: Workload = {
      name: 'many',
      begin(simulation) {
        const { clock } = simulation
        const step = clock.step.bind(clock)
        clock.step = () => {
          looked++
          return step()
        }
        for (let i = 0; i < count; i++) {
          simulation.submit(
            { kind: simulation.kind('w'), demand: ioDemandOf({ size: 1 }) },
            [{ datum: new Datum(`/f${i}`, false, false), mode: 'out' }],
            { compute: 0, bytes: [1 + ((i * 7919) % count)] },
          )
        }
      },
    }
    await simulate(workload, { platform: { nodes: [node({ ioExecutors: 1e6 })] } })
    return looked / count
  }
  const [few, many] = [await steps(100), await steps(5000)]
  assert(many <= 4 && many <= few * 1.5, `${few} steps each of 100, ${many} of 5000`)
})
