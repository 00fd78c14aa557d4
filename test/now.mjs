// Which test runs, for `npm test`: it watches from outside, so that a test that hangs has a name even where it stops its
// process. A test that needs more time than others says so with mayTake(seconds).
import { renameSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { isMainThread } from 'node:worker_threads'

const { now } = Date
const folder = process.env['TESTS_FOLDER']
const file = relative(process.cwd(), process.argv[1] ?? '')
// Children of a test may load this too.
const isWatched = folder !== undefined && process.env['TEST_RUN'] === undefined && file.endsWith('.test.ts')

/** The tests that have begun, the latest last: { name, since, limit }; and what ended last. */
const running = []
const began = now()
let before = { name: 'the start', since: began }

function say() {
  const text = JSON.stringify({ pid: process.pid, file, began, running, before })
  const path = join(folder, String(process.pid))
  writeFileSync(path, text)
  renameSync(path, `${path}.json`)
}

if (isWatched && isMainThread) {
  // What it starts can be found by this, whatever becomes of its parents.
  process.env['TEST_RUN'] = join(folder, String(process.pid))
  say()
  // What tests import may be another instance of this module.
  process.on('mayTake', seconds => {
    const test = running.at(-1) ?? before
    test.limit = 1000 * seconds
    say()
  })
  beforeEach(({ fullName: name }) => {
    running.push({ name, since: now() })
    say()
  })
  afterEach(({ fullName: name }) => {
    running.splice(
      running.findLastIndex(test => test.name === name),
      1,
    )
    before = { name, since: now() }
    say()
  })
  // Asked by the watcher, of a test that hangs.
  process.on('SIGUSR2', () => {
    const waitsFor = process.getActiveResourcesInfo()
    const path = join(folder, `${process.pid}.answer`)
    writeFileSync(path, JSON.stringify(waitsFor))
    renameSync(path, join(folder, `${process.pid}.waits`))
  })
}

/** The test or hook that runs now may take this long. */
export function mayTake(seconds) {
  process.emit('mayTake', seconds)
}
