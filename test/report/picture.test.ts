import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { pictureText, writePicture } from '../../src/report/export/picture.ts'
import { assertGolden } from './golden.ts'
import { randomRun } from './random-run.ts'
import { runStarted, sampleRun, stream, submitted } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()

test('the picture of a small run', async () => {
  const path = join(folder, 'run.svg')
  await writePicture(stream(sampleRun), path)
  assertGolden('picture.golden', readFileSync(path))
})

test('a run without tasks has a picture too', async () => {
  assert.match(await pictureText(stream([runStarted])), /^<svg[^]*<\/svg>\n$/)
})

test('nothing lies outside the picture, whatever the run', async () => {
  const property = fc.asyncProperty(randomRun, async ({ events }) => {
    const text = await pictureText(stream(events))
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(text) ?? []
    for (const [, x, y, w, h] of text.matchAll(
      /<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/g,
    )) {
      assert.ok(Number(x) + Number(w) <= Number(width) && Number(y) + Number(h) <= Number(height), text)
    }
    assert.doesNotMatch(text, /NaN|Infinity|undefined/)
  })
  await fc.assert(property, { numRuns: 100 })
})

test('names cannot break the picture', async () => {
  const run = { ...runStarted, run: '<script>"&' } as typeof runStarted
  assert.match(await pictureText(stream([run])), /&lt;script&gt;&quot;&amp;/)
  // What XML has no place for.
  const odd = { ...runStarted, run: 'a\u0007\u001b[31mb' } as typeof runStarted
  const text = await pictureText(stream([odd]))
  assert.equal(
    [...text].find(letter => letter < ' ' && letter !== '\n'),
    undefined,
  )
})

test('attempts are not counted as tasks, and lanes of I/O are called so', async () => {
  const task = { task: 1, attempt: 1 }
  const text = await pictureText(
    stream([
      { ...runStarted, nodes: [{ name: 'n', cpus: 2, memory: 1 }] } as typeof runStarted,
      submitted(0, 1, 0, [], []),
      { type: 'started', at: 1, ...task, node: 0, lane: 1, cpus: 1 },
      { type: 'failed', at: 2, ...task, failure: { name: 'Error', message: 'no' }, next: 'retry' },
      { type: 'started', at: 3, task: 1, attempt: 2, node: 0, lane: 4, cpus: 0 },
      { type: 'finished', at: 4, task: 1, attempt: 2 },
    ]),
  )
  assert.match(text, />\S+: 1 task in /)
  assert.match(text, />CPU 1</)
  assert.match(text, />I\/O 2</)
})
