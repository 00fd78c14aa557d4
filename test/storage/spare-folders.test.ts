import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { SpareFolders } from '../../src/storage/spare-folders.ts'
import { temporaryFolder } from '../runtime/embedded.ts'

const codeOf = (action: () => void): unknown => {
  try {
    action()
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code
  }
}

test('a folder is used again, and what is claimed is never replaced', () => {
  const folder = temporaryFolder()
  const [mine, others] = [new SpareFolders('one'), new SpareFolders('two')]
  const place = (name: string): string => join(folder, name)
  mine.become(place('a'))
  // Nothing was written there yet.
  assert.match(String(codeOf(() => others.become(place('a')))), /ENOTEMPTY|EEXIST/)
  writeFileSync(join(place('a'), 'a'), 'result')
  assert.equal(mine.takeBack(place('a')), false)
  rmSync(join(place('a'), 'a'))
  assert.equal(mine.takeBack(place('a')), true)
  const known = readdirSync(folder).length
  mine.become(place('b'))
  assert.equal(readdirSync(folder).length, known)
  mine.takeBack(place('b'))
  mine.remove(folder)
  others.remove(folder)
  assert.deepEqual(readdirSync(folder), [])
})

test('spare folders go from one staging folder to the other', () => {
  const folder = temporaryFolder()
  const spares = new SpareFolders('one')
  for (const name of ['x', 'y']) mkdirSync(join(folder, name))
  spares.become(join(folder, 'x', 'a'))
  spares.takeBack(join(folder, 'x', 'a'))
  spares.become(join(folder, 'y', 'a'))
  assert.deepEqual(readdirSync(join(folder, 'x')), [])
  spares.takeBack(join(folder, 'y', 'a'))
  // The folder is removed: the next one is made anew.
  rmSync(join(folder, 'y'), { recursive: true })
  assert.equal(
    codeOf(() => spares.become(join(folder, 'x', 'b'))),
    'ENOENT',
  )
  spares.become(join(folder, 'x', 'b'))
  assert(existsSync(join(folder, 'x', 'b')))
})
