import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { traceText, writeTrace } from '../../src/report/export/trace.ts'
import { assertGolden } from './golden.ts'
import { randomRun } from './random-run.ts'
import { sampleRun, stream, submitted } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()

interface TraceEvent {
  ph: string
  name: string
  pid: number
  tid: number
  ts: number
  dur: number
  id: number
  args: { task: number; outcome: string; tasks: number }
}

async function textOf(events: RunEvent[]): Promise<string> {
  let text = ''
  for await (const piece of traceText(stream(events))) text += piece
  return text
}

function parse(text: string): TraceEvent[] {
  return (JSON.parse(text) as { traceEvents: TraceEvent[] }).traceEvents
}

function slicesByLane(events: TraceEvent[]): Map<string, TraceEvent[]> {
  const lanes = new Map<string, TraceEvent[]>()
  for (const event of events) {
    if (event.ph !== 'X') continue
    const key = `${event.pid}/${event.tid}`
    lanes.set(key, [...(lanes.get(key) ?? []), event])
  }
  for (const slices of lanes.values()) slices.sort((a, b) => a.ts - b.ts)
  return lanes
}

const nanos = (micros: number): number => Math.round(micros * 1000)

function assertNoOverlap(events: TraceEvent[]): void {
  for (const slices of slicesByLane(events).values()) {
    slices.reduce((free, { ts, dur }) => {
      assert.ok(nanos(ts) >= free, `a slice begins at ${ts} before the one before it ended`)
      assert.ok(dur > 0)
      return nanos(ts) + nanos(dur)
    }, 0)
  }
}

test('the trace of a small run', async () => {
  assertGolden('trace.golden', Buffer.from(await textOf(sampleRun)))
})

test('slices never overlap on a lane and no running time is lost, in whatever order batches come', async () => {
  const property = fc.asyncProperty(randomRun, async ({ events, truth }) => {
    const text = await textOf(events)
    assert.equal(await textOf(events), text)
    const found = parse(text)
    assertNoOverlap(found)
    for (const [task, ran] of truth.ranMs) {
      const own = found.filter(event => event.ph === 'X' && event.args.task === task)
      if (truth.running.has(task)) continue
      const drawn = own.reduce((sum, { dur }) => sum + dur, 0) / 1000
      assert.ok(Math.abs(drawn - ran) < 0.001, `task ${task} ran ${ran} ms and ${drawn} are drawn`)
    }
  })
  await fc.assert(property, { numRuns: 150 })
})

test('arrows leave from a slice and arrive at a slice, forward in time', async () => {
  const property = fc.asyncProperty(randomRun, async ({ events }) => {
    const found = parse(await textOf(events))
    const lanes = slicesByLane(found)
    const isInSlice = ({ pid, tid, ts }: TraceEvent): boolean =>
      (lanes.get(`${pid}/${tid}`) ?? []).some(
        slice => nanos(slice.ts) <= nanos(ts) && nanos(ts) < nanos(slice.ts) + nanos(slice.dur),
      )
    const starts = found.filter(event => event.ph === 's')
    const ends = new Map(found.filter(event => event.ph === 'f').map(event => [event.id, event]))
    assert.equal(ends.size, starts.length)
    for (const start of starts) {
      assert.ok(isInSlice(start) && isInSlice(ends.get(start.id)!))
      // Slices of no length are drawn a nanosecond long, so a chain of them shifts by as many.
      assert.ok(ends.get(start.id)!.ts >= start.ts - 1)
    }
  })
  await fc.assert(property, { numRuns: 100 })
})

test('slices do not overlap even if the events do', async () => {
  const [started, defined] = [sampleRun[0]!, sampleRun[1]!]
  const events: RunEvent[] = [started, defined]
  for (let task = 1; task <= 20; task++) {
    events.push(
      submitted(0, task, 0, [], []),
      { type: 'started', at: task * 5, task, attempt: 1, node: 0, lane: 0, cpus: 1 },
      { type: 'finished', at: task * 5 + 10, task, attempt: 1 },
    )
  }
  assertNoOverlap(parse(await textOf(events)))
})

test('a version released early has its arrow from the running producer', async () => {
  const events = sampleRun.slice(0, 3)
  const submitted = { type: 'submitted', parent: null, group: null, priority: 0 } as const
  events.push(
    { ...submitted, at: 0, task: 1, kind: 0, reads: [], writes: [9] },
    { type: 'started', at: 1, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { ...submitted, at: 2, task: 2, kind: 1, reads: [9], writes: [] },
    { type: 'started', at: 3, task: 2, attempt: 1, node: 0, lane: 1, cpus: 1 },
    { type: 'finished', at: 4, task: 2, attempt: 1 },
    { type: 'finished', at: 9, task: 1, attempt: 1 },
  )
  const arrows = parse(await textOf(events)).filter(event => event.ph === 's' || event.ph === 'f')
  assert.deepEqual(
    arrows.map(({ ph, tid, ts }) => [ph, tid, ts]),
    [
      ['s', 0, 3000],
      ['f', 1, 3000],
    ],
  )
})

test('the arrow of a released version leaves at the moment of release', async () => {
  const events = sampleRun.slice(0, 3)
  const submitted = { type: 'submitted', parent: null, group: null, priority: 0 } as const
  events.push(
    { ...submitted, at: 0, task: 1, kind: 0, reads: [], writes: [8, 9] },
    { ...submitted, at: 0, task: 2, kind: 1, reads: [8], writes: [] },
    { type: 'started', at: 1, task: 1, attempt: 1, node: 0, lane: 0, cpus: 1 },
    { type: 'released', at: 3, task: 1, version: 8 },
    // A generator makes versions that were not known when it was submitted.
    { type: 'released', at: 4, task: 1, version: 20 },
    { type: 'started', at: 5, task: 2, attempt: 1, node: 0, lane: 1, cpus: 1 },
    { ...submitted, at: 5, task: 3, kind: 1, reads: [20], writes: [] },
    { type: 'finished', at: 6, task: 2, attempt: 1 },
    { type: 'started', at: 7, task: 3, attempt: 1, node: 0, lane: 1, cpus: 1 },
    { type: 'finished', at: 8, task: 3, attempt: 1 },
    { type: 'finished', at: 9, task: 1, attempt: 1 },
  )
  const arrows = parse(await textOf(events)).filter(event => event.ph === 's' || event.ph === 'f')
  assert.deepEqual(
    arrows.map(({ ph, tid, ts }) => [ph, tid, ts]),
    [
      ['s', 0, 3000],
      ['f', 1, 5000],
      ['s', 0, 4000],
      ['f', 1, 7000],
    ],
  )
})

test('beyond the limit arrows are left out, and the trace says from which task on', async () => {
  let text = ''
  for await (const piece of traceText(stream(sampleRun), 2)) text += piece
  assert.equal(parse(text).filter(event => event.ph === 's').length, 2)
  assert.ok(parse(text).some(event => event.name === 'no arrows from task 4 on'))
  assert.equal(
    (JSON.parse(text) as { otherData: { noArrowsFromTask: number } }).otherData.noArrowsFromTask,
    4,
  )
})

test('counters tell what held for long and are thinned out in bursts', async () => {
  const events = sampleRun.slice(0, 2)
  const tasks = 20_000
  for (let task = 1; task <= tasks; task++) {
    const at = task / 1000
    events.push(
      { type: 'submitted', at, task, kind: 0, parent: null, group: null, priority: 0, reads: [], writes: [] },
      { type: 'ready', at, task },
    )
  }
  events.push({ type: 'note', at: 5000, level: 'info', text: 'later' })
  const samples = parse(await textOf(events)).filter(
    event => event.ph === 'C' && event.name === 'ready tasks',
  )
  assert.ok(samples.length < 50)
  assert.equal(samples.at(-1)!.args.tasks, tasks)
  assert.equal(samples.at(-1)!.ts, tasks)
})

test('a trace is written to a file, and packed when its name says so', async () => {
  const plain = join(folder, 'trace.json')
  const packed = join(folder, 'trace.json.gz')
  await writeTrace(stream(sampleRun), plain)
  await writeTrace(stream(sampleRun), packed)
  assert.equal(readFileSync(plain, 'utf8'), await textOf(sampleRun))
  assert.equal(gunzipSync(readFileSync(packed)).toString(), await textOf(sampleRun))
})

test('a trace that cannot be made to its end leaves what was there before', async () => {
  const path = join(folder, 'kept', 'trace.json')
  mkdirSync(join(folder, 'kept'))
  writeFileSync(path, 'of the run before')
  async function* cut(): AsyncGenerator<RunEvent> {
    yield* stream(sampleRun)
    throw new Error('damaged')
  }
  await assert.rejects(writeTrace(cut(), path), /damaged/)
  assert.equal(readFileSync(path, 'utf8'), 'of the run before')
  assert.deepEqual(readdirSync(join(folder, 'kept')), ['trace.json'])
})

test('a journal without events gives a trace without slices', async () => {
  assert.deepEqual(parse(await textOf([])), [])
})
