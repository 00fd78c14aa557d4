import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { graphLines, writeGraph } from '../../src/report/export/graph.ts'
import { assertGolden } from './golden.ts'
import { randomRun } from './random-run.ts'
import { runStarted, sampleRun, stream, submitted } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()

async function textOf(events: RunEvent[]): Promise<string> {
  return (await graphLines(stream(events))).join('\n')
}

test('the graph of a small run', async () => {
  const path = join(folder, 'graph.dot')
  await writeGraph(stream(sampleRun), path)
  assertGolden('graph.golden', readFileSync(path))
})

test('the graph does not depend on times, nor on the numbers of versions', async () => {
  const property = fc.asyncProperty(randomRun, fc.nat(1000), async ({ events }, shift) => {
    const moved = events.map(event => {
      const later = { ...event, at: event.at * 2 }
      if (later.type !== 'submitted') return later
      const renumber = (version: number): number => version * 3 + shift
      return { ...later, reads: later.reads.map(renumber), writes: later.writes.map(renumber) }
    })
    assert.equal(await textOf(moved), await textOf(events))
  })
  await fc.assert(property, { numRuns: 50 })
})

test('nested tasks have the same numbers whichever caller was faster', async () => {
  const call = (task: number, parent: number | null, kind: number): RunEvent => {
    const rest = { group: null, priority: 0, reads: [], writes: [] }
    return { type: 'submitted', at: 0, task, kind, parent, ...rest }
  }
  const one = [call(1, null, 0), call(2, null, 0), call(3, 1, 1), call(4, 2, 2), call(5, null, 0)]
  const two = [call(1, null, 0), call(2, null, 0), call(3, 2, 2), call(4, null, 0), call(5, 1, 1)]
  assert.equal(await textOf(one), await textOf(two))
  assert.match(await textOf(one), /"t1\.1" \[label="kind 1#1\.1"/)
})

test('concurrent writers of one version all have an edge, and none to itself', async () => {
  const call = (task: number, reads: number[], writes: number[]): RunEvent => {
    const rest = { parent: null, group: null, priority: 0 }
    return { type: 'submitted', at: 0, task, kind: 0, ...rest, reads, writes }
  }
  const text = await textOf([call(1, [1], [2]), call(2, [1, 2], [2]), call(3, [2], [])])
  assert.deepEqual(text.match(/"t\d" -> "t\d"/g), ['"t1" -> "t2"', '"t1" -> "t3"', '"t2" -> "t3"'])
})

test('names cannot break out of a label', async () => {
  const name = 'a"]; evil [label="\\'
  const events: RunEvent[] = [
    { type: 'kind-defined', at: 0, kind: 0, name, form: 'function', module: 'm' },
    submitted(0, 1, 0, [], []),
  ]
  assert.ok((await textOf(events)).includes(String.raw`label="a\"]; evil [label=\"\\#1"`))
})

test('a large run is drawn by kind, and says so', async () => {
  const events: RunEvent[] = [runStarted]
  for (const [kind, name] of ['split', 'align', 'merge'].entries()) {
    events.push({ type: 'kind-defined', at: 0, kind, name, form: 'function', module: 'm' })
  }
  for (let task = 1; task <= 3000; task++) {
    const kind = task % 3
    const rest = { parent: null, group: null, priority: 0, writes: [task] }
    events.push({ type: 'submitted', at: 0, task, kind, ...rest, reads: task > 1 ? [task - 1] : [] })
    if (task > 3) events.push({ type: 'finished', at: 1, task, attempt: 1 })
  }
  assertGolden('graph-by-kind.golden', Buffer.from(await textOf(events)))
})
