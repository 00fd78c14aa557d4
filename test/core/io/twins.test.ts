import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FakeStorage, seeking } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'

const nodes = (count: number): object[] => Array.from({ length: count }, () => ({}))

const learn = (count: number, tasks: number, options: object = {}): IoRig => {
  const rig = new IoRig({
    nodes: nodes(count),
    storage: [device('disk', 64)],
    ioExecutors: 64,
    learning: 'paper-together',
    ...options,
  })
  rig.many(tasks, 'io', { bandwidth: 'auto' })
  new FakeStorage(rig, seeking(64, 8, 0.2), 2 * MB).run()
  assert.equal(rig.engine.readyCount, 0)
  return rig
}

test('equal devices of several nodes should try each limit once among them, and all use what was found', () => {
  const rig = learn(12, 2000)
  const tried = rig.of('trial').map(({ concurrency }) => concurrency)
  assert.equal(new Set(tried).size, tried.length, `tried: ${tried.join(', ')}`)
  assert(new Set(rig.of('trial').map(({ device: index }) => index)).size > 1, 'they share the work')
  const verdicts = rig.of('verdict').filter(({ learned }) => learned > 0)
  assert.equal(new Set(verdicts.map(({ device: index }) => index)).size, 12, 'each node has a choice')
  assert.deepEqual([...new Set(verdicts.map(({ concurrency }) => concurrency))].includes(8), true)
  assert.equal(rig.engine.io.export().length, 1, 'it is one thing that was learned')
})

test('learning together should take as many tasks as learning on one node, and less time on more nodes', () => {
  const spent = (rig: IoRig): number => rig.of('verdict').at(-1)?.learned ?? 0
  const [one, twelve] = [learn(1, 4000), learn(12, 4000)]
  assert(spent(twelve) <= 127, `${spent(twelve)} of all rungs together`)
  assert(spent(one) <= 127)
  assert(twelve.now < one.now / 5, `${twelve.now} against ${one.now}`)
})

test('devices that differ should learn each for itself', () => {
  const rig = learn(1, 400, { nodes: [{}, { storage: [device('disk', 32)] }] })
  assert.equal(rig.engine.io.export().length, 2)
})

test('given any number of nodes, tasks and share of learning, all tasks end and the share is kept', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 300 }),
      fc.constantFrom(0, 0.1, 0.5, 1),
      fc.boolean(),
      (count, tasks, learningShare, isBounded) => {
        const rig = new IoRig({
          nodes: nodes(count),
          storage: [device('disk', 64)],
          ioExecutors: 16,
          learningShare,
        })
        const bandwidth = isBounded ? { min: 4 * MB, max: 64 * MB, delta: 2 } : 'auto'
        rig.many(tasks, 'io', { bandwidth })
        new FakeStorage(rig, seeking(64, 4, 0.3), 1 * MB).run()
        assert.equal(rig.engine.readyCount, 0)
        for (const { learned } of rig.of('verdict')) {
          if (learningShare < 1)
            // Those that run when it has learned enough have begun already.
            assert(learned <= Math.max(learningShare * tasks, 12) + 16, `${learned} of ${tasks}`)
        }
      },
    ),
    { numRuns: 60 },
  )
})
