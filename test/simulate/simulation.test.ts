import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Datum } from '../../src/core/data/datum.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { fifo, fifoData, lifo } from '../../src/core/schedule/policy.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import type { NodeModel } from '../../src/simulate/machine/platform.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { Simulation } from '../../src/simulate/simulation.ts'
import type { Workload } from '../../src/simulate/input/workload.ts'

const node = (given: Partial<NodeModel> = {}): NodeModel => ({
  name: 'n',
  cpus: 1,
  memory: 100,
  tags: [],
  ...given,
})

/** So many tasks of so many seconds each, which need nothing. */
const flat = (tasks: number, seconds: number, cpus = 1): Workload => ({
  name: 'flat',
  begin(simulation) {
    for (let i = 0; i < tasks; i++) {
      simulation.submit({ kind: simulation.kind('t'), demand: demandOf(cpus, 0, []) }, [], {
        compute: seconds * 1000,
      })
    }
  },
})

const makespan = async (workload: Workload, ...nodes: NodeModel[]): Promise<number> =>
  (await simulate(workload, { platform: { nodes } })).makespan

test('tasks that need nothing take their number over the CPUs, rounded up, times their time', async () => {
  assert.equal(await makespan(flat(10, 3), node({ cpus: 4 })), 9)
  assert.equal(await makespan(flat(10, 3), node({ cpus: 4 }), node({ name: 'm', cpus: 6 })), 3)
})

test('CPUs of twice the speed take half the time', async () => {
  assert.equal(await makespan(flat(4, 3), node({ cpus: 2, speed: 2 })), 3)
})

test('where more CPUs are offered than there are, tasks share them', async () => {
  assert.equal(await makespan(flat(8, 3), node({ cpus: 8, cores: 4 })), 6)
  assert.equal(await makespan(flat(2, 3), node({ cpus: 8, cores: 4 })), 3)
})

test('a file that another node has comes through both links, the slowest part of the way deciding', async () => {
  const disk = { name: 'd', path: '/d', read: 100, write: 50, capacity: null }
  const nodes = [
    node({ storage: [disk], link: 20 }),
    node({ name: 'm', storage: [disk], link: 10, tags: ['m'] }),
  ]
  const pass: Workload = {
    name: 'pass',
    begin(simulation) {
      const file = new Datum('/f', false, false)
      const kind = simulation.kind('t')
      simulation.submit({ kind, demand: demandOf(1, 0, []) }, [{ datum: file, mode: 'out' }], {
        compute: 1000,
        bytes: [100],
      })
      simulation.submit({ kind, demand: demandOf(1, 0, ['m']) }, [{ datum: file, mode: 'in' }], {
        compute: 0,
        bytes: [100],
      })
    },
  }
  assert.equal(await makespan(pass, ...nodes), 1 + 100 / 50 + 100 / 10)
})

test('what was just written is read from the cache, at its own rate', async () => {
  const disk = { name: 'd', path: '/d', read: 1, write: 50, capacity: null }
  const workload: Workload = {
    name: 'again',
    begin(simulation) {
      const file = new Datum('/f', false, false)
      const kind = simulation.kind('t')
      const one = { kind, demand: demandOf(1, 0, []) }
      simulation.submit(one, [{ datum: file, mode: 'out' }], { compute: 0, bytes: [100] })
      simulation.submit(one, [{ datum: file, mode: 'in' }], { compute: 0, bytes: [100] })
    },
  }
  assert.equal(await makespan(workload, node({ storage: [disk], cache: 1000, cacheRate: 25 })), 2 + 4)
})

test('I/O tasks run beside tasks that compute, and no more at once than their bandwidth allows', async () => {
  const disk = { name: 'd', path: '/d', read: 100, write: 100, capacity: null }
  const workload: Workload = {
    name: 'io',
    begin(simulation) {
      const wish = { bandwidth: 50, direction: 'write' as const, size: 200, device: null }
      const demand = ioDemandOf(wish, 0, 0, [])
      for (let i = 0; i < 4; i++) {
        simulation.submit(
          { kind: simulation.kind('w'), demand },
          [{ datum: new Datum(`/f${i}`, false, false), mode: 'out' }],
          {
            compute: 0,
            bytes: [200],
          },
        )
      }
      simulation.submit({ kind: simulation.kind('c'), demand: demandOf(1, 0, []) }, [], { compute: 7000 })
    },
  }
  const events: RunEvent[] = []
  const { makespan: took } = await simulate(workload, {
    platform: { nodes: [node({ storage: [disk] })] },
    observer: event => events.push(event),
  })
  assert.equal(took, 8)
  const starts = events.filter(event => event.type === 'started').map(({ at }) => at)
  assert.deepEqual(starts, [0, 0, 0, 4000, 4000])
})

test('a run says that it was simulated, and gives the events of a real one', async () => {
  const events: RunEvent[] = []
  await simulate(flat(2, 1), { platform: { nodes: [node()] }, observer: event => events.push(event) })
  assert.deepEqual(
    events.map(({ type }) => type),
    [
      'run-started',
      'kind-defined',
      'submitted',
      'ready',
      'submitted',
      'ready',
      'started',
      'finished',
      'started',
      'finished',
      'run-ended',
    ],
  )
  assert(events[0]?.type === 'run-started' && events[0].simulated)
})

test('tasks that no node has room for are refused, not waited for', async () => {
  await assert.rejects(makespan(flat(1, 1, 3), node({ cpus: 2 })), /MR_CONSTRAINT/)
})

// --- random platforms and graphs ---

const device = fc.record({
  read: fc.integer({ min: 1, max: 50 }),
  write: fc.integer({ min: 1, max: 50 }),
  stream: fc.integer({ min: 1, max: 60 }),
  knee: fc.integer({ min: 1, max: 6 }),
  falloff: fc.constantFrom(0, 0.5, 2),
  latency: fc.constantFrom(0, 3),
  shared: fc.boolean(),
})
const nodes = fc.array(
  fc.record({
    cpus: fc.integer({ min: 1, max: 4 }),
    cores: fc.integer({ min: 1, max: 4 }),
    speed: fc.constantFrom(0.5, 1, 2),
    cache: fc.nat(300),
    link: fc.integer({ min: 1, max: 80 }),
    device,
  }),
  { minLength: 1, maxLength: 4 },
)
const tasks = fc.array(
  fc.record({
    compute: fc.nat(2000),
    read: fc.array(fc.nat(30), { maxLength: 3 }),
    bytes: fc.nat(100),
    isIo: fc.boolean(),
    cpus: fc.integer({ min: 1, max: 2 }),
  }),
  { minLength: 1, maxLength: 30 },
)

test('given any platform and graph: bytes are conserved, nothing is above what it can, time goes forward', () => {
  fc.assert(
    fc.property(nodes, tasks, fc.constantFrom(fifo, lifo, fifoData), (given, work, policy) => {
      const [first] = given
      const model: NodeModel[] = given.map(({ device: own, ...rest }, i) => ({
        name: `n${i}`,
        memory: 100,
        tags: [],
        ...rest,
        cpus: Math.max(2, rest.cpus),
        // A shared device is one: all nodes describe the same.
        storage: [
          {
            name: own.shared ? 'shared' : `d${i}`,
            path: '/d',
            capacity: null,
            ...(own.shared ? { ...first?.device, shared: true } : own),
          } as never,
        ],
      }))
      let last = 0
      const simulation = new Simulation({
        platform: { nodes: model },
        policy,
        observer: ({ at }) => {
          assert(at >= last, 'time ran backwards')
          last = at
        },
      })
      const files: Datum[] = []
      let written = 0
      let read = 0
      for (const { compute, read: from, bytes, isIo, cpus } of work) {
        const inputs = [
          ...new Set(from.map(i => files[i % Math.max(1, files.length)]).filter(one => one !== undefined)),
        ]
        const file = new Datum(`/f${files.length}`, false, false)
        const sizes = inputs.map(one => sizeOf.get(one) as number)
        const wish = { bandwidth: null, direction: null, size: bytes, device: null }
        simulation.submit(
          { kind: simulation.kind('t'), demand: isIo ? ioDemandOf(wish, 0, 0, []) : demandOf(cpus, 0, []) },
          [...inputs.map(datum => ({ datum, mode: 'in' as const })), { datum: file, mode: 'out' as const }],
          { compute, bytes: [...sizes, bytes] },
        )
        sizeOf.set(file, bytes)
        files.push(file)
        written += bytes
        for (const size of sizes) read += size
      }
      do {
        simulation.decide()
        for (const one of simulation.stores.devices) {
          for (const way of ['read', 'write'] as const) {
            const most = one.model[way] ?? Infinity
            assert(one.flow(way) <= most * (1 + 1e-9), `${one.flow(way)} of ${most}`)
          }
        }
        for (const [i, one] of simulation.stores.nodes.entries()) {
          assert(one.load <= (model[i]?.cores ?? 0) * (1 + 1e-9), 'more CPUs than there are')
        }
        for (const { freeLanes, cpus } of simulation.engine.nodes) assert(freeLanes >= 0 && freeLanes <= cpus)
      } while (simulation.clock.step())
      simulation.expectEnd()
      assert.equal(simulation.ended, work.length)
      const sum = (pick: (one: (typeof simulation.stores.devices)[number]) => number): number =>
        simulation.stores.devices.reduce((all, one) => all + pick(one), 0)
      assert.equal(
        sum(({ moved }) => moved.write),
        written,
      )
      const kept = simulation.stores.nodes.reduce((all, { cache }) => all + cache.hits, 0)
      const fromDevices = sum(({ moved }) => moved.read)
      // What came from another node's cache did not touch a device.
      assert(fromDevices + kept <= read)
      assert.equal(kept + simulation.stores.nodes.reduce((all, { cache }) => all + cache.misses, 0), read)
    }),
  )
})

const sizeOf = new WeakMap<Datum, number>()

test('given a short kind of task with one that takes long, we should run those behind it elsewhere, as the runtime does', () => {
  const simulation = new Simulation({ platform: { nodes: [node({ cpus: 2 })] } })
  const kind = simulation.kind('short', 'function')
  const spec = { kind, demand: demandOf(1, 0, []) }
  // Tasks with files are not moved just because a CPU is idle.
  const submit = (compute: number): void => {
    simulation.submit(spec, [{ datum: new Datum('/file', false, false), mode: 'out' }], { compute })
  }
  for (let i = 0; i < 20; i++) submit(0.1)
  simulation.run()
  submit(1000)
  for (let i = 0; i < 12; i++) submit(0.1)
  const others: number[] = []
  const { engine } = simulation
  engine.observer = event => {
    if (event.type === 'finished') others.push(event.at)
  }
  const began = simulation.clock.now
  simulation.run()
  const waited = others.slice(0, -1).map(at => at - began)
  assert.equal(others.length, 13)
  assert(Math.max(...waited) < 50, `the last one ended after ${Math.max(...waited)} ms`)
})
