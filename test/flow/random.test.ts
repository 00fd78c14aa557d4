import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { Running, makeFolder } from '../cli/folder.ts'
import { make } from './flows.ts'
import { randomFlow, runInSequence, writeFlow, writeSources } from './random-flow.ts'
import type { RandomFlow } from './random-flow.ts'

function check(folder: string, flow: RandomFlow, expected: ReadonlyMap<string, string>): void {
  for (const path of flow.tasks.flatMap(task => task.outputs)) {
    assert.equal(readFileSync(join(folder, path), 'utf8'), expected.get(path), JSON.stringify(path))
  }
}

function takeRan(folder: string): number[] {
  const path = join(folder, 'ran')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  writeFileSync(path, '')
  return lines
    .filter(line => line !== '')
    .map(Number)
    .sort((a, b) => a - b)
}

/** Tasks that have to run after a change: those whose command, or what they read or had made, is different. */
function expectedRuns(
  flow: RandomFlow,
  before: { files: ReadonlyMap<string, string>; salt: ReadonlyMap<number, string> },
  after: { files: ReadonlyMap<string, string>; salt: ReadonlyMap<number, string> },
  gone: ReadonlySet<string>,
): number[] {
  const pathsOf = (input: number): readonly string[] =>
    input < 0 ? [flow.sources[-input - 1] as string] : (flow.tasks[input]?.outputs ?? [])
  return flow.tasks
    .filter(
      ({ id, inputs, outputs }) =>
        before.salt.get(id) !== after.salt.get(id) ||
        outputs.some(path => gone.has(path)) ||
        inputs.flatMap(pathsOf).some(path => before.files.get(path) !== after.files.get(path)),
    )
    .map(({ id }) => id)
}

test('random workflows make what a run in sequence makes, and after changes only what has changed', async () => {
  const changes = fc.record({
    sources: fc.array(fc.nat(), { maxLength: 2 }),
    commands: fc.array(fc.nat(), { maxLength: 1 }),
    deleted: fc.array(fc.nat(), { maxLength: 2 }),
    edited: fc.array(fc.nat(), { maxLength: 1 }),
  })
  await fc.assert(
    fc.asyncProperty(randomFlow, fc.array(changes, { minLength: 1, maxLength: 2 }), async (flow, steps) => {
      const folder = makeFolder({})
      const sources = new Map(flow.sources.map((path, i) => [path, `source ${i}\n`]))
      const salt = new Map<number, string>()
      writeSources(folder, sources)
      writeFlow(folder, flow, salt)
      await make(folder)
      let files = runInSequence(flow, sources, salt)
      check(folder, flow, files)
      assert.deepEqual(
        takeRan(folder),
        flow.tasks.map(({ id }) => id),
      )
      for (const [step, { sources: changed, commands, deleted, edited }] of steps.entries()) {
        const before = { files, salt: new Map(salt) }
        for (const one of changed)
          sources.set(flow.sources[one % flow.sources.length] as string, `new ${step} ${one}\n`)
        for (const one of commands) salt.set(one % flow.tasks.length, `s${step}`)
        const outputs = flow.tasks.flatMap(task => task.outputs)
        const gone = new Set(deleted.map(one => outputs[one % outputs.length] as string))
        for (const path of gone) rmSync(join(folder, path))
        for (const one of edited) {
          const path = outputs[one % outputs.length] as string
          if (!gone.has(path)) writeFileSync(join(folder, path), 'edited')
          gone.add(path)
        }
        writeSources(folder, sources)
        writeFlow(folder, flow, salt)
        await make(folder)
        files = runInSequence(flow, sources, salt)
        check(folder, flow, files)
        assert.deepEqual(takeRan(folder), expectedRuns(flow, before, { files, salt }, gone))
      }
    }),
    { numRuns: 6 },
  )
})

/** A hunt takes more of them: RESUME_KILLS=300 npm test -- flow/random */
test('after kill -9 at any moment only what was not finished is run again', async () => {
  await fc.assert(
    fc.asyncProperty(
      randomFlow,
      fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 2, maxLength: 3 }),
      async (flow, delays) => {
        const folder = makeFolder({})
        const sources = new Map(flow.sources.map((path, i) => [path, `source ${i}\n`]))
        writeSources(folder, sources)
        writeFlow(folder, flow, new Map(), 'sleep 0.02')
        const finished = new Set<number>()
        for (const delay of delays) {
          const running = new Running(folder, ['make'])
          // From the first sign of life, so that the moment falls into the work and not into the loading.
          await running.printed('stderr', 'run ').catch(() => undefined)
          await new Promise(resolve => setTimeout(resolve, delay))
          running.process.kill('SIGKILL')
          await running.ended
          // Commands may still be noting that they began; the guard ends them.
          await new Promise(resolve => setTimeout(resolve, 150))
          for (const id of takeRan(folder)) assert.ok(!finished.has(id), `${id} ran again`)
          for (const { id, outputs } of flow.tasks) {
            if (outputs.every(path => existsSync(join(folder, path)))) finished.add(id)
          }
        }
        await make(folder)
        for (const id of takeRan(folder)) assert.ok(!finished.has(id), `${id} ran again at last`)
        check(folder, flow, runInSequence(flow, sources, new Map()))
      },
    ),
    { numRuns: Number(process.env['RESUME_KILLS'] ?? 4) },
  )
})

test('random workflows with temporary files make the same, leave none of them, and are then up to date', async () => {
  const numbers = fc.array(fc.nat(), { maxLength: 4 })
  const changes = fc.record({ sources: numbers, deleted: numbers })
  await fc.assert(
    fc.asyncProperty(
      randomFlow,
      numbers,
      fc.array(changes, { maxLength: 2 }),
      async (flow, chosen, steps) => {
        const folder = makeFolder({})
        const outputs = flow.tasks.flatMap(task => task.outputs)
        const temps = new Set(chosen.map(one => outputs[one % outputs.length] as string))
        const kept = outputs.filter(path => !temps.has(path))
        const sources = new Map(flow.sources.map((path, i) => [path, `source ${i}\n`]))
        for (const [step, { sources: changed, deleted }] of [
          { sources: [], deleted: [] },
          ...steps,
        ].entries()) {
          for (const one of changed)
            sources.set(flow.sources[one % flow.sources.length] as string, `new ${step} ${one}\n`)
          for (const one of deleted) rmSync(join(folder, kept[one % kept.length] ?? 'none'), { force: true })
          writeSources(folder, sources)
          writeFlow(folder, flow, new Map(), ':', temps)
          await make(folder)
          const files = runInSequence(flow, sources, new Map())
          for (const path of kept) assert.equal(readFileSync(join(folder, path), 'utf8'), files.get(path))
          for (const path of temps) assert.ok(!existsSync(join(folder, path)), `${path} is left`)
          const ran = takeRan(folder)
          assert.deepEqual(ran, [...new Set(ran)])
          assert.match((await make(folder)).stderr, /nothing to do/)
        }
      },
    ),
    { numRuns: Number(process.env['TEMP_RUNS'] ?? 3) },
  )
})
