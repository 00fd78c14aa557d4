import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from './folder.ts'
import { squares } from './programs.ts'

test('a trace or graph is refused before the run where it would be lost, or would replace a program', async () => {
  const program = squares()
  const folder = makeFolder({ 'app.mjs': program })
  mkdirSync(join(folder, 'there'))
  const refused: [string[], RegExp][] = [
    [['--trace', 'app.mjs'], /--trace app\.mjs cannot be written: it is a program, which would be lost/],
    [['--graph', 'there'], /--graph there cannot be written: it is a folder/],
    [['--picture', 'nowhere/x.svg'], /--picture nowhere\/x\.svg cannot be written: there is no folder/],
    [['--trace', 'x'.repeat(5000)], /cannot be written: ENAMETOOLONG/],
    [['--trace', 'x', '--graph', './x'], /--trace and --graph name the same file/],
  ]
  for (const [args, message] of refused) {
    const { code, stdout, stderr } = await millrace(folder, ['run', 'app.mjs', ...args])
    assert.match(stderr, message)
    assert.equal(code, 2)
    assert.equal(stdout, '')
  }
  assert.equal(readFileSync(join(folder, 'app.mjs'), 'utf8'), program)
  const shown = await millrace(folder, ['show', '--trace', 'app.mjs'])
  assert.equal(shown.code, 2)
  assert.equal(readFileSync(join(folder, 'app.mjs'), 'utf8'), program)
})

test('a trace replaces what is there as a whole, also through a link, and leaves nothing beside it', async () => {
  const folder = makeFolder({ 'app.mjs': squares() })
  writeFileSync(join(folder, 'trace.json'), 'of the run before')
  symlinkSync('trace.json', join(folder, 'link.json'))
  const args = ['--trace', 'link.json', '--graph', 'run.dot', '--picture', 'run.svg', '--progress', 'none']
  const { code, stderr } = await millrace(folder, ['run', 'app.mjs', ...args])
  assert.equal(code, 0, stderr)
  assert.ok(JSON.parse(readFileSync(join(folder, 'trace.json'), 'utf8')))
  assert.equal(
    readFileSync(join(folder, 'link.json'), 'utf8'),
    readFileSync(join(folder, 'trace.json'), 'utf8'),
  )
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('.')),
    ['.millrace'],
  )
})

test(
  'a trace for which there is no room is an error, also where it goes to a device',
  { skip: existsSync('/dev/full') ? false : 'there is no /dev/full' },
  async () => {
    const folder = makeFolder({ 'app.mjs': squares() })
    assert.equal((await millrace(folder, ['run', 'app.mjs', '--progress', 'none'])).code, 0)
    const { code, stderr } = await millrace(folder, ['show', '--trace', '/dev/full'])
    assert.equal(code, 1)
    assert.match(stderr, /ENOSPC/)
  },
)

test('more CPUs than any machine has are refused', async () => {
  const folder = makeFolder({ 'app.mjs': squares() })
  const { code, stderr } = await millrace(folder, ['run', 'app.mjs', '--cpus', '1e9'])
  assert.equal(code, 2)
  assert.match(stderr, /cpus is 1000000000, and no machine has more than 10000/)
})
