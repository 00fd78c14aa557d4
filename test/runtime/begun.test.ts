import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { Running, jsonLines, makeFolder } from '../cli/folder.ts'

/** Short tasks, among which one waits for a file: it queues behind others and takes long. */
const program = `
import { existsSync } from 'node:fs'
import { command, task, main, barrier } from 'millrace'
export const step = task({ name: 'step' }, isLong => {
  while (isLong && !existsSync('go')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
})
export const call = command({ name: 'call' }, isLong =>
  isLong ? ['sh', '-c', 'while [ ! -e go ]; do sleep 0.02; done'] : ['true'])
main(async () => {
  const work = process.argv[2] === 'step' ? step : call
  for (let i = 0; i < 60; i++) work(false)
  await barrier()
  for (let i = 0; i < 60; i++) work(i === 30)
  await barrier()
})
`

for (const kind of ['step', 'call']) {
  test(`that a task (${kind}) has begun is told while it runs, also if it queued behind others`, async () => {
    const folder = makeFolder({ 'app.mjs': program })
    const run = new Running(folder, ['run', 'app.mjs', '--json', '--cpus', '2', '--', kind])
    // The long one is task 91.
    const begun = run.printed('stdout', '"task":91,"attempt":1,')
    await Promise.race([begun, run.ended])
    assert.equal(run.process.exitCode, null, run.stderr)
    writeFileSync(join(folder, 'go'), '')
    const { code, stdout } = await run.ended
    assert.equal(code, 0)
    const told = jsonLines(stdout).filter(event => event['task'] === 91)
    assert.deepEqual(
      told.map(event => event['type']).filter(type => type !== 'returned'),
      ['submitted', 'ready', 'started', 'finished'],
    )
  })
}
