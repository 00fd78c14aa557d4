import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { until } from './embedded.ts'
import { Program } from './program.ts'

const skip =
  !existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync('/tmp').dev ? 'no second device' : false

/** Changes a file whose place is on the fast layer, and looks at it while others may still read what it was. */
const PROGRAM = `
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { task, main, configure, waitOn, FILE_IN, FILE_INOUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'always', progress: 'none' })
const pause = () => new Promise(resolve => setTimeout(resolve, 10))
export const hold = task({ name: 'hold', io: true, params: [FILE_IN] }, async path => {
  const before = await readFile(path, 'utf8')
  while (!existsSync('gate')) await pause()
  return before + ' ' + (await readFile(path, 'utf8'))
})
export const change = task({ name: 'change', io: true, params: [FILE_INOUT], size: 100 }, async path => {
  await writeFile(path, (await readFile(path, 'utf8')) + '+')
})
export const look = task({ name: 'look', io: true, params: [FILE_IN] }, async path => readFile(path, 'utf8'))
main(async () => {
  const [, , path, mode] = process.argv
  const held = mode === 'held' ? hold(path) : null
  await waitOn(change(path))
  // Whatever moves has time to.
  for (let i = 0; i < 20; i++) await pause()
  await writeFile('seen', await waitOn(look(path)))
  while (mode !== 'held' && !existsSync('gate')) await pause()
  await writeFile('gate', '')
  if (held) await writeFile('held', await held)
})
`

function makeProgram(): { program: Program; path: string; remove: () => void } {
  const program = new Program({ 'app.mjs': PROGRAM })
  const fast = mkdtempSync('/dev/shm/millrace-test-versions-')
  mkdirSync(program.path('slow'))
  const path = join(fast, 'file')
  writeFileSync(path, 'old')
  const storage = [
    { name: 'memory', path: fast, bandwidth: '1000MB/s', capacity: '1MB' },
    { name: 'disk', path: 'slow', bandwidth: '100MB/s' },
  ]
  writeFileSync(program.path('machine.yaml'), JSON.stringify({ nodes: [{ storage }] }))
  const remove = (): void => {
    rmSync(fast, { recursive: true, force: true })
    program.remove()
  }
  return { program, path, remove }
}

test('a changed file is read as it is, and its readers from before as it was', { skip }, async () => {
  const { program, path, remove } = makeProgram()
  try {
    const { code, err } = await program.run('app.mjs', [path, 'held'])
    assert.equal(code, 0, err)
    assert.equal(program.read('seen'), 'old+')
    assert.equal(program.read('held'), 'old old')
    assert.equal(readFileSync(path, 'utf8'), 'old+')
  } finally {
    remove()
  }
})

test(
  'a changed file is at its path when the task has ended, and a run that is killed leaves it',
  { skip },
  async () => {
    const { program, path, remove } = makeProgram()
    try {
      program.start('app.mjs', [path, 'alone'])
      await until(() => program.read('seen') !== '', 'it is changed')
      assert.equal(readFileSync(path, 'utf8'), 'old+')
      process.kill(program.coordinator, 'SIGKILL')
      await program.end()
      assert.equal(readFileSync(path, 'utf8'), 'old+')
    } finally {
      remove()
    }
  },
)
