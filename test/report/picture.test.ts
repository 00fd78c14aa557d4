import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { pictureText, writePicture } from '../../src/report/picture.ts'
import { assertGolden } from './golden.ts'
import { randomRun } from './random-run.ts'
import { runStarted, sampleRun, stream } from './sample-run.ts'
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
})
