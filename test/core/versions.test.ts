import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Version } from '../../src/core/data/datum.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import { Rig, cpus } from './rig.ts'

const made = (task: Task): Version => task.accesses.find(({ write }) => write)?.write as Version

test('given a reader of a version that is not there, we should start it when the version is committed', () => {
  const rig = new Rig()
  const x = rig.datum()
  const writer = rig.call('writer', [[x, 'out']])
  const reader = rig.call('reader', [[x, 'in']])
  assert.deepEqual(rig.names(), ['writer'])
  assert.equal(reader.state, 'waiting')
  rig.finish(writer)
  assert.deepEqual(rig.names(), ['reader'])
  assert.equal(reader.accesses[0]?.read?.value, 'writer#1')
})

test('given a writer after a reader (WAR), we should not make it wait', () => {
  const rig = new Rig()
  const x = rig.datum()
  const reader = rig.call('reader', [[x, 'in']])
  rig.call('writer', [[x, 'out']])
  assert.deepEqual(rig.names(), ['reader', 'writer'])
  assert.equal(reader.accesses[0]?.read?.value, 'initial')
  assert.equal(reader.accesses[0]?.read?.superseded, true)
})

test('given a second writer that is faster (WAW), we should let each reader see the version of its turn', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const slow = rig.call('slow', [[x, 'out']])
  const early = rig.call('early', [[x, 'in']])
  const fast = rig.call('fast', [[x, 'out']])
  const late = rig.call('late', [[x, 'in']])
  assert.deepEqual(rig.names(), ['slow', 'fast'])
  rig.finish(fast)
  assert.deepEqual(rig.names(), ['late'])
  assert.equal(late.accesses[0]?.read?.value, fast.name)
  assert.equal(early.state, 'waiting')
  rig.finish(slow)
  assert.deepEqual(rig.names(), ['early'])
  assert.equal(early.accesses[0]?.read?.value, slow.name)
  assert.deepEqual(rig.discarded().length, 1, 'the initial value only')
  rig.finish(late)
  rig.finish(early)
  rig.go()
  assert.deepEqual(
    rig.discarded().map(({ value }) => value),
    ['initial', slow.name],
  )
  assert.equal(x.current.value, fast.name)
})

test('given many writers that end in reverse order, we should discard each older version once', () => {
  const rig = new Rig({ cpus: 300 })
  const x = rig.datum()
  const writers = Array.from({ length: 300 }, () => rig.call('writer', [[x, 'out']]))
  rig.go()
  for (const writer of writers.toReversed()) rig.finish(writer)
  rig.go()
  assert.equal(rig.discarded().length, 300)
  assert.equal(new Set(rig.discarded()).size, 300)
  assert.equal(x.current.value, writers.at(-1)?.name)
})

test('given memory in place, we should make a writer wait for older readers and for older writers', () => {
  const rig = new Rig({ cpus: 8 })
  const x = rig.datum(true)
  const readers = [rig.call('r1', [[x, 'in']]), rig.call('r2', [[x, 'in']])]
  const writer = rig.call('w1', [[x, 'inout']])
  const over = rig.call('w2', [[x, 'out']])
  const last = rig.call('r3', [[x, 'in']])
  assert.deepEqual(rig.names(), ['r1', 'r2'])
  rig.finish(readers[0] as Task)
  assert.deepEqual(rig.names(), [])
  rig.finish(readers[1] as Task)
  assert.deepEqual(rig.names(), ['w1'])
  rig.finish(writer)
  assert.deepEqual(rig.names(), ['w2'])
  rig.finish(over)
  assert.deepEqual(rig.names(), ['r3'])
  rig.finish(last)
  rig.assertIdle()
})

test('given a task that reads and writes the same memory in place, we should not make it wait for itself', () => {
  const rig = new Rig()
  const x = rig.datum(true)
  rig.call('both', [
    [x, 'in'],
    [x, 'inout'],
  ])
  assert.deepEqual(rig.names(), ['both'])
})

const MODES = ['in', 'out', 'inout', 'concurrent', 'commutative'] as const
for (const first of MODES) {
  for (const second of MODES) {
    for (const inPlace of [false, true]) {
      const what = inPlace ? 'memory in place' : 'a datum'
      test(`given a task that uses ${what} twice, ${first} and ${second}, we should not make it wait for itself`, () => {
        const rig = new Rig()
        const x = rig.datum(inPlace)
        rig.call('twice', [
          [x, first],
          [x, second],
        ])
        rig.call('after', [[x, 'inout']])
        assert.deepEqual(rig.drain(), ['twice', 'after'])
        rig.assertIdle()
        assert.equal(x.current.value, 'after#2')
        assert.equal(x.current.readers, 0)
      })
    }
  }
}

test('given a writer of memory in place that is stopped, no task should see it before it has stopped', () => {
  const rig = new Rig()
  const x = rig.datum(true)
  const writer = rig.call('writer', [[x, 'inout']])
  rig.go()
  rig.engine.watch(x.current)
  rig.engine.cancelTask(writer, null, { kind: 'unread' }, ++rig.now)
  assert.deepEqual(rig.names(), [])
  assert.deepEqual(rig.stops(), [writer])
  assert.deepEqual(rig.settled(), [])
  rig.engine.stopped(writer, ++rig.now)
  rig.go()
  assert.equal(rig.settled().length, 1)
  rig.engine.fallBack(x)
  assert.equal(x.current.value, 'initial')
})

test('given failed versions, fallBack should give the nearest valid version and discard what lies between', () => {
  const rig = new Rig()
  const x = rig.datum()
  const good = rig.call('good', [[x, 'out']])
  const bad = rig.call('bad', [[x, 'inout']], { onFailure: 'cancelSuccessors' })
  const lost = rig.call('lost', [[x, 'inout']])
  rig.go()
  rig.finish(good)
  rig.go()
  rig.fail(bad)
  assert.equal(lost.state, 'cancelled')
  assert.equal(made(lost).producer, lost, 'who was to make it')
  assert.equal(made(lost).cause, bad, 'and why it never came')
  assert.equal(rig.call('reader', [[x, 'in']]).state, 'cancelled')
  assert.equal(made(good).superseded, true)
  rig.engine.fallBack(x)
  assert.equal(x.current.value, good.name)
  assert.equal(x.current.superseded, false, 'it has readers again')
  const reader = rig.call('reader', [[x, 'in']])
  assert.deepEqual(rig.names(), ['reader'])
  rig.finish(reader)
  const next = rig.call('next', [[x, 'inout']])
  assert.equal(next.accesses[0]?.read?.value, good.name)
  assert.deepEqual(rig.drain(), ['next'])
  assert.equal(x.current.value, next.name)
})

test('given a failed version and an older one that is still to come, fallBack should wait for that one', () => {
  const rig = new Rig()
  const x = rig.datum()
  const slow = rig.call('slow', [[x, 'out']])
  const bad = rig.call('bad', [[x, 'out']], { onFailure: 'cancelSuccessors' })
  rig.go()
  rig.fail(bad)
  rig.engine.fallBack(x)
  assert.equal(x.current, made(slow))
  const reader = rig.call('reader', [[x, 'in']])
  assert.equal(reader.state, 'waiting')
  rig.finish(slow)
  assert.deepEqual(rig.names(), ['reader'])
})

test('given a version that failed, an OUT access should make a new one and end the trouble', () => {
  const rig = new Rig()
  const x = rig.datum()
  const bad = rig.call('bad', [[x, 'out']], { onFailure: 'cancelSuccessors' })
  rig.go()
  rig.fail(bad)
  rig.call('fresh', [[x, 'out']])
  rig.call('reader', [[x, 'in']])
  assert.deepEqual(rig.drain(), ['fresh', 'reader'])
})

test('given a version committed before its producer ends, we should start its readers at once', () => {
  const rig = new Rig()
  const x = rig.datum()
  const producer = rig.call('producer', [[x, 'out']], { onFailure: 'cancelSuccessors' })
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  made(producer).value = 'early'
  rig.engine.commit(made(producer), ++rig.now)
  assert.deepEqual(rig.names(), ['reader'])
  rig.fail(producer)
  assert.equal(reader.state, 'running')
  assert.equal(x.current.state, 'ready')
})

test('given a value that the program writes, we should let older readers end with the old one', () => {
  const rig = new Rig()
  const x = rig.datum()
  const old = x.current
  const reader = rig.call('reader', [[x, 'in']])
  rig.go()
  rig.engine.write(x, 'new', ++rig.now)
  assert.equal(old.superseded, true)
  rig.go()
  assert.deepEqual(rig.discarded(), [])
  rig.finish(reader)
  rig.go()
  assert.deepEqual(rig.discarded(), [old])
  assert.equal(rig.engine.read(x, rig.now).value, 'new')
})

test('given a datum that is removed, we should discard its value after its last reader', () => {
  const rig = new Rig()
  const x = rig.datum()
  const writer = rig.call('writer', [[x, 'out']])
  const reader = rig.call('reader', [[x, 'in']])
  rig.engine.remove(x, ++rig.now)
  rig.go()
  rig.finish(writer)
  rig.go()
  assert.equal(rig.discarded().length, 1, 'the initial value')
  rig.finish(reader)
  rig.go()
  assert.deepEqual(
    rig.discarded().map(({ value }) => value),
    ['initial', writer.name],
  )
})

test('given a team that is removed, we should discard what it made when its last member has ended', () => {
  const rig = new Rig()
  const x = rig.datum()
  const members = [rig.call('add', [[x, 'concurrent']]), rig.call('add', [[x, 'concurrent']])]
  rig.go()
  rig.engine.remove(x, ++rig.now)
  for (const member of members) rig.finish(member)
  rig.go()
  assert.deepEqual(new Set(rig.discarded().map(({ value }) => value)), new Set(['initial', 'add#2']))
})

test('given a watched version, we should tell once when it is settled, and at once when it is already', () => {
  const rig = new Rig()
  const x = rig.datum()
  const writer = rig.call('writer', [[x, 'out']])
  rig.engine.watch(x.current)
  rig.engine.watch(x.current)
  rig.go()
  assert.deepEqual(rig.settled(), [])
  rig.finish(writer)
  rig.go()
  assert.deepEqual(rig.settled(), [x.current])
  rig.engine.watch(x.current)
  rig.go()
  assert.equal(rig.settled().length, 2)
})

test('given a watched version that is replaced at once, we should tell of it before it is discarded', () => {
  const rig = new Rig()
  const x = rig.datum()
  const slow = rig.call('slow', [[x, 'out']])
  rig.engine.watch(x.current)
  const fast = rig.call('fast', [[x, 'out']])
  rig.go()
  rig.finish(fast)
  rig.finish(slow)
  rig.go()
  assert.deepEqual(
    rig.said.map(one => `${one.type} ${String('version' in one && one.version.value)}`),
    ['discard initial', `settled ${slow.name}`, `discard ${slow.name}`],
  )
})

test('given watched readers, we should tell when the last has ended', () => {
  const rig = new Rig()
  const x = rig.datum(true)
  const reader = rig.call('reader', [[x, 'in']])
  rig.engine.watchReaders(x.current)
  rig.go()
  assert.deepEqual(rig.said, [])
  rig.finish(reader)
  rig.go()
  assert.deepEqual(rig.said, [{ type: 'unread', version: x.current }])
})

test('given a retried INOUT task, we should keep its input until it has ended', () => {
  const rig = new Rig()
  const x = rig.datum()
  const writer = rig.call('writer', [[x, 'inout']], { retries: 2 })
  for (let attempt = 1; attempt <= 2; attempt++) {
    assert.deepEqual(rig.go(), [writer])
    rig.fail(writer)
  }
  assert.deepEqual(rig.go(), [writer])
  assert.deepEqual(rig.discarded(), [])
  assert.equal(writer.attempt, 3)
  rig.finish(writer)
  rig.go()
  assert.equal(rig.discarded()[0]?.value, 'initial')
})

test('given a large graph over few data, we should not hold on to versions that are not needed', () => {
  const rig = new Rig()
  const x = rig.datum()
  for (let i = 0; i < 50; i++) {
    rig.call('add', [[x, 'concurrent']])
    rig.call('look', [[x, 'in']])
    rig.drain()
  }
  let kept = 0
  for (let at: Version | null | undefined = x.current; at; at = at.previous ?? at.team?.base) kept++
  assert(kept <= 2, `${kept} versions are still reachable`)
})

test('given files, we should name the path with each version and say when one is committed', () => {
  const rig = new Rig({ cpus: 1 })
  const x = rig.datum()
  Object.assign(x, { path: '/data/x' })
  const task = rig.call('writer', [[x, 'inout']], { demand: cpus(1) })
  const { read, write } = task.accesses[0] ?? {}
  rig.drain()
  const submitted = rig.events[0]
  assert(submitted?.type === 'submitted')
  assert.deepEqual([submitted.reads, submitted.writes], [[read?.id], [write?.id]])
  assert.deepEqual(submitted.files, [
    { version: read?.id, path: '/data/x' },
    { version: write?.id, path: '/data/x' },
  ])
  assert(rig.events.some(event => event.type === 'committed' && event.version === write?.id))
})

test('given a version that its task releases, we should start its readers while the task runs on', () => {
  const rig = new Rig({ cpus: 4 })
  const [x, y] = [rig.datum(), rig.datum()]
  const producer = rig.call(
    'producer',
    [
      [x, 'out'],
      [y, 'out'],
    ],
    { onFailure: 'cancelSuccessors' },
  )
  const early = rig.call('early', [[x, 'in']])
  const late = rig.call('late', [[y, 'in']])
  rig.names()
  const [first, second] = producer.accesses.map(({ write }) => write as Version)
  assert(first && second)
  first.value = 'released'
  rig.engine.release(producer, first, rig.now, rig.now)
  assert.deepEqual(rig.names(), ['early'])
  assert.equal(producer.state, 'running')
  assert(rig.events.some(event => event.type === 'released' && event.version === first.id))
  // What was released stays when the task fails; what was not is lost.
  rig.engine.failed(producer, { name: 'Error', message: 'no' }, new Error('no'), rig.now)
  rig.names()
  assert.equal(first.state, 'ready')
  assert.equal(second.state, 'failed')
  assert.equal(early.state, 'running')
  assert.equal(late.state, 'cancelled')
})

test('given a version that was to be released and never comes, we should cancel its readers', () => {
  const rig = new Rig({ cpus: 4 })
  const x = rig.datum()
  const producer = rig.call('producer', [[x, 'out']])
  const reader = rig.call('reader', [[x, 'in']])
  rig.names()
  rig.engine.lose(made(producer), producer, rig.now)
  rig.names()
  assert.equal(reader.state, 'cancelled')
  assert.equal(producer.state, 'running')
})
