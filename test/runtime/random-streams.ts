import assert from 'node:assert/strict'
import fc from 'fast-check'
import { barrier, cancel, group, shared, waitOn } from 'millrace'
import * as tasks from '../fixtures/random-streams.ts'
import type { Stage } from '../fixtures/random-streams.ts'

/** Random pipelines of generators, compared with what a sequential, lazy run of the same comes to. */

interface Pipeline {
  source: number
  length: number
  /** Where the source fails; -1 for nowhere. */
  failAt: number
  /** In how many attempts; there are three. */
  failures: number
  stages: Stage[]
  sink: 'collect' | 'deliver' | 'leave' | 'late' | 'inside' | 'cancel'
  leaveAfter: number
}

const stage: fc.Arbitrary<Stage> = fc.record({
  kind: fc.constantFrom('map', 'filter', 'take', 'repeat', 'large', 'nested'),
  by: fc.nat(6),
})

const pipeline: fc.Arbitrary<Pipeline> = fc
  .record({
    source: fc.nat(tasks.sources.length - 1),
    length: fc.nat(25),
    failAt: fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(20) }),
    failures: fc.integer({ min: 1, max: 3 }),
    stages: fc.array(stage, { maxLength: 4 }),
    sink: fc.constantFrom('collect', 'deliver', 'leave', 'late', 'inside', 'cancel'),
    leaveAfter: fc.integer({ min: 1, max: 8 }),
  })
  .map(one => (one.failAt > one.length ? { ...one, failAt: -1 } : one))

const several = fc.record({
  order: fc.shuffledSubarray([0, 1, 2, 3]),
  failAt: fc.nat(4),
  failures: fc.integer({ min: 0, max: 3 }),
})

export const programs = fc
  .record({
    pipelines: fc.array(pipeline, { minLength: 1, maxLength: 4 }),
    several: fc.array(several, { maxLength: 2 }),
  })
  .map(program => {
    if (program.pipelines.every(({ sink }) => sink !== 'cancel')) return program
    // Tasks whose thread is stopped under them begin again, and would count one attempt more.
    return {
      pipelines: program.pipelines.map(one => ({ ...one, failAt: -1 })),
      several: program.several.map(one => ({ ...one, failures: 0 })),
    }
  })

// --- what it must come to ---

function* expectedValues({ length, failAt, failures, stages, sink }: Pipeline): Generator<number> {
  const fails = sink !== 'inside' && failAt >= 0 && failures === 3
  function* source(): Generator<number> {
    for (let i = 0; i < length; i++) {
      if (fails && i === failAt) throw new Error(`fails at ${failAt}`)
      yield i * 7 + 3
    }
    if (fails && failAt === length) throw new Error(`fails at ${failAt}`)
  }
  let values: Generator<number> = source()
  for (const one of stages) values = through(values, one)
  yield* values
}

function* through(values: Generator<number>, { kind, by }: Stage): Generator<number> {
  let taken = 0
  if (kind === 'take' && by === 0) return
  for (const n of values) {
    if (kind === 'map') yield n * by + 1
    else if (kind === 'filter') {
      if (n % (by + 1) === 0) yield n
    } else if (kind === 'take') {
      yield n
      if (++taken === by) return
    } else if (kind === 'repeat') for (let i = 0; i < by % 4; i++) yield n + i
    else yield kind === 'nested' ? n + 1 : n
  }
}

function expected(one: Pipeline): { seen: number[]; fails: boolean } {
  const seen: number[] = []
  try {
    for (const value of expectedValues(one)) {
      seen.push(value)
      if (one.sink === 'leave' && seen.length === one.leaveAfter) break
    }
  } catch {
    return { seen, fails: true }
  }
  return { seen, fails: false }
}

// --- what it comes to ---

const counters = (n: number): Int32Array => shared(Int32Array, n)

function streamOf({ source, length, failAt, failures, stages }: Pipeline, attempts: Int32Array) {
  let stream = (tasks.sources[source] as (typeof tasks.sources)[0])(attempts, length, failAt, failures)
  stages.forEach((how, i) => (stream = (i % 2 === 0 ? tasks.through1 : tasks.through4)(stream, how)))
  return stream
}

let groups = 0

/** What was delivered before the group was cancelled is what would have been without; nothing comes twice. */
async function runCancelled(one: Pipeline): Promise<void> {
  const { seen: all } = expected(one)
  const counts = counters(2000)
  const delivered: ReturnType<typeof tasks.deliver>[] = []
  const name = `cancelled ${++groups}`
  await group(name, async () => {
    for await (const value of streamOf(one, counters(1))) {
      delivered.push(tasks.deliver(counts, delivered.length, value))
      if (delivered.length === one.leaveAfter) await cancel(name)
    }
  }).catch(() => undefined)
  const values = await Promise.allSettled(delivered.map(value => waitOn(value)))
  for (const [i, value] of values.entries()) {
    if (value.status === 'fulfilled') assert.equal(value.value, all[i])
  }
  for (const count of counts) assert(count <= 1, 'a value was delivered twice')
}

async function run(one: Pipeline): Promise<{ seen: number[]; fails: boolean }> {
  const { source, length, stages, sink, leaveAfter } = one
  const attempts = counters(1)
  if (sink === 'inside')
    return { seen: await waitOn(tasks.inside(source, attempts, length, stages)), fails: false }
  const stream = streamOf(one, attempts)
  if (sink === 'collect') {
    const { seen, error } = await waitOn(tasks.collect(stream))
    return { seen, fails: error !== '' }
  }
  const counts = counters(2000)
  const delivered: ReturnType<typeof tasks.deliver>[] = []
  const kept: number[] = []
  let fails = false
  try {
    for await (const value of stream) {
      if (sink === 'late') kept.push(value)
      else delivered.push(tasks.deliver(counts, delivered.length, value))
      if (sink === 'leave' && delivered.length === leaveAfter) break
    }
  } catch {
    fails = true
  }
  // Values that were kept can be used when the stream is over.
  for (const value of kept) delivered.push(tasks.deliver(counts, delivered.length, value))
  const seen = await waitOn(delivered)
  for (let i = 0; i < 2000; i++) {
    assert.equal(
      Atomics.load(counts, i),
      i < seen.length ? 1 : 0,
      `value ${i} was delivered otherwise than once`,
    )
  }
  return { seen, fails }
}

async function runSeveral({
  order,
  failAt,
  failures,
}: {
  order: number[]
  failAt: number
  failures: number
}) {
  const futures = tasks.several(counters(1), order, failAt, failures)
  const isReleased = (index: number): boolean => order.slice(0, failAt).includes(index)
  for (let index = 0; index < 4; index++) {
    const value = await waitOn(futures[index as 0]).catch((error: Error) => error.message)
    if (failures < 3 || isReleased(index)) assert.equal(value, index * 11)
    else assert.match(String(value), /fails/)
  }
}

export async function check(program: {
  pipelines: Pipeline[]
  several: { order: number[]; failAt: number; failures: number }[]
}): Promise<void> {
  const results = program.pipelines.map(async one => {
    if (one.sink === 'cancel') await runCancelled(one)
    else assert.deepEqual(await run(one), expected(one))
  })
  await Promise.all([...results, ...program.several.map(runSeveral)])
  await barrier()
}
