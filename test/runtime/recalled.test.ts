import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { barrier, group, waitOn, waitOnFile } from 'millrace'
import { brief, briefOnFile, briefOrLong, briefOrLongInTurn, held } from '../fixtures/recalled.ts'
import { rejection, temporaryFolder, until } from './embedded.ts'

const folder = temporaryFolder()
const TASKS = 100
const FAILS = 5

test('given tasks that were taken back from their thread after a failure, we should know that nothing runs', async () => {
  for (let i = 0; i < TASKS; i++) brief(false)
  await barrier()
  const failing = group('failing', () => {
    for (let i = 0; i < TASKS; i++) brief(i === FAILS)
  })
  assert.equal((await rejection(failing)).code, 'MR_TASK_FAILED')
  // Its values are not taken: it goes on only when nothing else could.
  held(100)
  await barrier()
})

const newFiles = (name: string): string[] => {
  const paths = Array.from({ length: TASKS }, (_, i) => join(folder, `${name}-${i}`))
  for (const path of paths) writeFileSync(path, 'text')
  return paths
}

/** Copies that were made for tasks, not the marks of folders that are used again. A version in its place may have a second link here. */
const staged = (): string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter(name => !name.endsWith('.millrace-claim'))
    .filter(name => {
      const stats = name.startsWith('.millrace') && statSync(join(folder, name), { throwIfNoEntry: false })
      return stats && stats.isFile() && stats.nlink === 1
    })

test('given tasks with files that wait on threads when one fails, we should not keep what was made ready for them', async () => {
  const paths = newFiles('fails')
  for (const path of paths) briefOnFile(path, false)
  await barrier()
  const failing = group('failing', () => {
    paths.forEach((path, i) => void briefOnFile(path, i === FAILS))
  })
  assert.equal((await rejection(failing)).code, 'MR_TASK_FAILED')
  await barrier()
  await until(() => staged().length === 0, 'nothing staged')
})

test('given tasks with files that wait behind a long one, we should run them elsewhere and keep nothing of the first place', async () => {
  const paths = newFiles('long')
  const end = join(folder, 'end')
  for (const path of paths) briefOrLong(path, '')
  await barrier()
  paths.forEach((path, i) => void briefOrLong(path, i === 0 ? end : ''))
  for (const path of paths.slice(1)) await waitOnFile(path)
  // The long one holds the one that it writes.
  await until(() => staged().length <= 1, 'one staged')
  writeFileSync(end, '')
  await barrier()
})

test('given tasks that wait for their turn behind a long one, we should give each back once, however long its files take to go', async () => {
  const directories = Array.from({ length: 40 }, (_, i) => join(folder, `directory-${i}`))
  for (const directory of directories) {
    mkdirSync(directory)
    for (let i = 0; i < 60; i++) writeFileSync(join(directory, String(i)), 'text')
  }
  const arrays = directories.map(() => new Float64Array(20_000))
  const end = join(folder, 'end-of-turn')
  const callAll = (first: string): void => {
    directories.forEach(
      (directory, i) => void briefOrLongInTurn(directory, i === 0 ? first : '', arrays[i] as Float64Array),
    )
  }
  callAll('')
  await barrier()
  callAll(end)
  await waitOn(arrays.slice(1))
  writeFileSync(end, '')
  await barrier()
})
