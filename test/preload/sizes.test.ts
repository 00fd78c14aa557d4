// Programs that ask for the size of a file that still grows: half a file is never taken for a whole one
// without a word. The producer writes the second part only after the consumer has been told a size.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  eventually,
  hasCommand,
  rule,
  skip,
  step,
  tools,
  withWorkflow,
  type Line,
  type Outcome,
} from './harness.ts'

const plan = [step(0, 'S', '1'), step(1, 'Q', '1'), rule('file', 'f', '0', 'on_close:1', 'no_update')]
const consumer = (how: string): [string, string[]] => [tools.fixture('ask-size'), ['f', how]]

const ask = async (
  [program, args]: [string, string[]],
  waitsForMarker: boolean,
): Promise<{ consumed: Outcome; events: Line[] }> => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-size-'))
  const marker = join(folder, 'asked')
  let result: { consumed: Outcome; events: Line[] } | undefined
  await withWorkflow(plan, async workflow => {
    const pauseText = waitsForMarker ? `while [ ! -e ${marker} ]; do sleep 0.01; done` : 'sleep 0.1'
    const script = `head -c 1000 /dev/zero >&3; ${pauseText}; head -c 500 /dev/zero >&3`
    const options = { cwd: workflow.dir }
    const read = workflow.exec('Q', program, [...args, marker], options)
    const write = workflow.exec('S', 'sh', ['-c', `{ ${script}; } 3> f`], options)
    const [consumed, produced] = await Promise.all([read.done, write.done])
    assert.equal(produced.code, 0, produced.stderr)
    assert.ok(!waitsForMarker || existsSync(marker))
    result = { consumed, events: workflow.ps().filter(line => line['kind'] === 'trusted') }
  })
  rmSync(folder, { recursive: true })
  assert.ok(result)
  return result
}

for (const how of ['name', 'seek'])
  test(`the size asked for by ${how} is the final one`, { skip }, async () => {
    const { consumed, events } = await ask(consumer(how), false)
    assert.equal(consumed.stdout, '1500\n', consumed.stderr)
    assert.deepEqual(events, [])
  })

test(
  'a program that asks a descriptor and reads to the end gets all of it, as it grows',
  { skip },
  async () => {
    const { consumed, events } = await ask(consumer('all'), true)
    assert.equal(consumed.stdout, '1500\n', consumed.stderr)
    assert.deepEqual(events, [])
  },
)

test('a program that reads just the size that it was told is reported', { skip }, async () => {
  const { consumed, events } = await ask(consumer('exact'), true)
  assert.equal(consumed.stdout, '1000\n')
  assert.equal(events.length, 1)
  assert.equal(events[0]?.['path'], 'f')
  assert.equal(events[0]?.['step'], 'Q')
  assert.match(String(events[0]?.['text']), /got 1000 bytes and read no more.*mode update/)
})

test('a mapping of the size that a program was told fails, and is reported', { skip }, async () => {
  const { consumed, events } = await ask(consumer('map'), true)
  assert.equal(consumed.code, 1)
  assert.match(consumed.stderr, /mmap/)
  assert.equal(events.length, 1)
})

test('node reading a whole file at once is reported or right', { skip }, async () => {
  const script = `const fs = require('fs'); const fd = fs.openSync('f'); fs.fstatSync(fd);
    fs.writeFileSync(process.argv[1], ''); console.log(fs.readFileSync('f').length)`
  const { consumed, events } = await ask([process.execPath, ['-e', script]], true)
  assert.ok(consumed.stdout === '1500\n' || events.length > 0, consumed.stdout + consumed.stderr)
})

test('cat and sort stream, whatever they ask', { skip: skip || !hasCommand('sort') }, async () => {
  const script = 'sort < f > /dev/null; cat f | wc -c; touch'
  const { consumed, events } = await ask(['sh', ['-c', `${script} "$0"`]], false)
  assert.equal(consumed.stdout.trim(), '1500')
  assert.deepEqual(events, [])
})

test(
  'a program that asks for the size of an input that others go on to read is not reported, and waits for nobody',
  { skip: skip || !hasCommand('python3') },
  async () => {
    const line = '{ python3 -c pass; : > "$0"; cat; } < f | wc -c'
    const { consumed, events } = await ask(['sh', ['-c', line]], true)
    assert.equal(consumed.stdout.trim(), '1500', consumed.stderr)
    assert.deepEqual(events, [])
  },
)

// The producer goes on when the consumer waits to see whether what it was told is true.
for (const line of ['wc -c f', 'wc -c < f', 'cmp -s f whole'])
  test(`a program that only asks a descriptor for the size is reported: ${line}`, { skip }, async () => {
    await withWorkflow(plan, async workflow => {
      const options = { cwd: workflow.dir }
      const script = 'head -c 1000 /dev/zero >&3; while [ ! -e go ]; do sleep 0.02; done; echo >&3'
      writeFileSync(workflow.path('whole'), Buffer.alloc(2000))
      const write = workflow.exec('S', 'sh', ['-c', `{ ${script}; } 3> f`], options)
      await eventually(() => Number(workflow.file('f')?.['written']) === 1000)
      const read = workflow.exec('Q', 'sh', ['-c', `exec ${line}`], options)
      let over = false
      void read.done.then(() => (over = true))
      await eventually(() => over || workflow.ps().some(seen => seen['for'] === 'commit'))
      writeFileSync(workflow.path('go'), '')
      await Promise.all([read.done, write.done])
      const events = workflow.ps().filter(seen => seen['kind'] === 'trusted')
      assert.deepEqual(
        events.map(({ path, step: who }) => [path, who]),
        [['f', 'Q']],
      )
    })
  })
