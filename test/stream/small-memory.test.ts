// Whole workflows whose files are larger than the memory that they get.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { skipSmall, withSmallMemory } from '../preload/small-memory.ts'
import { assertClean, read, run, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()
const options = { skip: skip || skipSmall, timeout: 240_000 }

const layers = (): string[] =>
  readdirSync(tmpdir()).filter(name => name.includes(`millrace-layer.`) && name.includes(`.${process.pid}.`))

test('three steps pass ten megabytes through two of memory; nothing is left of it', options, async () => {
  await withSmallMemory('2m', async ({ memory }) => {
    const dir = join(memory, 'files')
    const growing = (name: string): Record<string, unknown> => ({
      name,
      committed: 'on_close',
      mode: 'no_update',
    })
    const { code, told } = await run({
      stages: {
        make: { out: ['numbers', 'kept'], rules: [growing('numbers')] },
        double: { in: ['numbers'], out: ['doubled'], rules: [{ name: 'doubled', committed: 'on_close' }] },
        sum: { in: ['doubled'], out: ['sum'] },
      },
      steps: {
        make: 'echo small > kept; seq 1 600000 > numbers',
        double: "awk '{ print 2 * $1 }' numbers > doubled",
        sum: 'awk \'{ s += $1 } END { printf "%.0f\\n", s }\' < doubled > sum',
      },
      extra: { permanent: ['sum', 'kept'] },
      options: { dir },
    })
    assert.equal(code, 0, told)
    assert.equal(read(dir, 'sum'), '360000600000\n')
    assert.equal(read(dir, 'kept'), 'small\n')
    assert.deepEqual(readdirSync(dir).sort(), ['kept', 'sum'])
    assert.match(told, /files moved to another layer/)
    assert.deepEqual(layers(), [])
    assertClean()
  })
})

test('a permanent file for which there is no room is left where it is, and it is said', options, async () => {
  await withSmallMemory('1m', async ({ memory }) => {
    const dir = join(memory, 'files')
    const { code, told } = await run({
      stages: { make: { out: ['big'], rules: [{ name: 'big', committed: 'on_close' }] } },
      steps: { make: 'head -c 3000000 /dev/zero > big' },
      extra: { permanent: ['big'] },
      options: { dir },
    })
    assert.equal(code, 1, told)
    assert.match(told, /big could not be brought to/)
    assert.ok(existsSync(readlinkSync(join(dir, 'big'))))
  })
})
