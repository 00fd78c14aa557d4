import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { runFiles } from '../../scripts/testing/run-files.mjs'

const folder = mkdtempSync(join(tmpdir(), 'millrace-watcher-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const HEAD = `
import { mayTake } from '${join(import.meta.dirname, '..', 'now.mjs')}'
import { describe, test, before } from 'node:test'
import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
`
/** A child in a session of its own that is not waited for, as daemons are. */
const CHILD = `
const child = spawn('sleep', ['600'], { detached: true, stdio: 'inherit' })
child.unref()
writeFileSync(import.meta.filename + '.pid', String(child.pid))
`

/** Runs these test files and gives what was said of them. */
async function runTests(files: Record<string, string>) {
  const names = Object.entries(files).map(([name, text]) => {
    const path = join(folder, `${name}.test.ts`)
    writeFileSync(path, HEAD + text)
    return path
  })
  const said: string[] = []
  const limits = { test: 120_000, file: 300_000, end: 500 }
  const environment: NodeJS.ProcessEnv = { ...process.env }
  // This test is watched itself; and a run of tests in a test would say nothing.
  delete environment['TEST_RUN']
  delete environment['NODE_TEST_CONTEXT']
  const tell = (line: string): void => void said.push(line)
  const ended = await runFiles(process.execPath, names, { limits, atOnce: 2, environment, tell })
  const isLeft = (name: string): boolean => {
    const pid = readFileSync(join(folder, `${name}.test.ts.pid`), 'utf8')
    const status = `/proc/${pid}/status`
    return existsSync(status) && !/^State:\s+Z/m.test(readFileSync(status, 'utf8'))
  }
  return { ...ended, said: said.join('\n'), isLeft }
}

test('a test that hangs is named, and ended with all that its file started', async () => {
  const { failed, said, isLeft, problem } = await runTests({
    waits: `${CHILD} describe('a suite', () => { test('waits for ever', async () => {
      mayTake(0.5)
      await new Promise(resolve => setTimeout(resolve, 600_000))
    }) })`,
    blocks: `test('goes well', () => {}); test('stops its process', () => {
      mayTake(0.5)
      execFileSync('sleep', ['601'])
    })`,
    hook: `before(async () => {
      mayTake(0.5)
      await new Promise(resolve => setTimeout(resolve, 600_000))
    }); test('never', () => {})`,
    stays: `test('was the last', () => {}); setInterval(() => mayTake(0.5), 100)`,
    fine: `test('goes well', () => {})`,
  })
  assert.equal(problem, null)
  assert.deepEqual(failed.map(path => path.replace(/.*\//, '')).sort(), [
    'blocks.test.ts',
    'hook.test.ts',
    'stays.test.ts',
    'waits.test.ts',
  ])
  assert.match(
    said,
    /^HANGS: \S*waits\.test\.ts, in 'a suite > waits for ever' for \d+ s; it waits for .*Timeout/m,
  )
  assert.match(said, /^ *\d+ of \d+, S, \d+ s: sleep 600$/m)
  assert.match(said, /^HANGS: \S*blocks\.test\.ts, in 'stops its process' for \d+ s; it does not answer/m)
  assert.match(said, /^ *\d+ of \d+, S, \d+ s: sleep 601$/m)
  assert.match(said, /^HANGS: \S*hook\.test\.ts, after 'the start'/m)
  assert.match(said, /^HANGS: \S*stays\.test\.ts, after 'was the last'/m)
  assert.ok(!isLeft('waits'))
})

test('what a file leaves behind is named and ended, and the file fails for nothing else', async () => {
  const { failed, left, said, isLeft } = await runTests({
    leaves: `test('goes well', () => { ${CHILD} })`,
    clean: `test('goes well', () => {})`,
  })
  assert.deepEqual(failed, [])
  assert.deepEqual(
    left.map(path => path.replace(/.*\//, '')),
    ['leaves.test.ts'],
  )
  assert.match(said, /^LEFT BEHIND by \S*leaves\.test\.ts[^]*: sleep 600$/m)
  assert.ok(!isLeft('leaves'))
})
