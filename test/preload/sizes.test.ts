// Programs that ask for the size of a file that still grows: it is not known yet, and no program takes a part of the file
// for the whole without a word. The producer writes the second part only after the consumer has been told a size.
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
  start,
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

test('a program that reads just the size that it was told is told 0, and is reported', { skip }, async () => {
  const { consumed, events } = await ask(consumer('exact'), true)
  assert.equal(consumed.stdout, '0\n')
  assert.equal(events.length, 1)
  assert.equal(events[0]?.['path'], 'f')
  assert.equal(events[0]?.['step'], 'Q')
  assert.match(String(events[0]?.['text']), /got 0 .* read nothing.*mode update/)
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
  'a program that asks for the size of an input that others go on to read is not reported, and does not wait',
  { skip: skip || !hasCommand('python3') },
  async () => {
    const line = '{ python3 -c pass; : > "$0"; cat; } < f | wc -c'
    const { consumed, events } = await ask(['sh', ['-c', line]], true)
    assert.equal(consumed.stdout.trim(), '1500', consumed.stderr)
    assert.deepEqual(events, [])
  },
)

const lines = (from: number, to: number): string =>
  Array.from({ length: to - from + 1 }, (_, i) => `line ${from + i}\n`).join('')

/** Half of the file is there when the reader starts; the rest comes when it waits, or has ended. */
const readGrowing = async (line: string): Promise<{ read: Outcome; events: Line[] }> => {
  let result: { read: Outcome; events: Line[] } | undefined
  await withWorkflow(plan, async workflow => {
    const options = { cwd: workflow.dir }
    writeFileSync(workflow.path('whole'), lines(1, 2000))
    writeFileSync(workflow.path('first'), lines(1, 1000))
    writeFileSync(workflow.path('rest'), lines(1001, 2000))
    const script = 'cat first >&3; while [ ! -e go ]; do sleep 0.02; done; cat rest >&3'
    const write = workflow.exec('S', 'sh', ['-c', `{ ${script}; } 3> f`], options)
    const half = lines(1, 1000).length
    assert.ok(await eventually(() => Number(workflow.file('f')?.['written']) === half))
    const reading = workflow.exec('Q', 'sh', ['-c', line], options)
    let over = false
    void reading.done.then(() => (over = true))
    assert.ok(
      await eventually(
        () => over || workflow.ps().some(seen => seen.type === 'wait' && seen['path'] === 'f'),
      ),
    )
    writeFileSync(workflow.path('go'), '')
    const [read] = await Promise.all([reading.done, write.done])
    result = { read, events: workflow.ps().filter(seen => seen['kind'] === 'trusted') }
  })
  assert.ok(result)
  return result
}

for (const line of ['cmp -s f whole', 'exec cmp -s f whole'])
  test(
    `a program that trusts the size of a descriptor and reads nothing is reported: ${line}`,
    { skip },
    async () => {
      const { events } = await readGrowing(line)
      assert.deepEqual(
        events.map(({ path, step: who }) => [path, who]),
        [['f', 'Q']],
      )
    },
  )

// Programs that ask for the size and read by it: what they give is what they give for the whole file, or an error.
for (const [needs, line] of [
  ['head', 'head -c -10 f'],
  ['head', 'head -c -10 < f'],
  ['head', 'head -n -10 f'],
  ['head', 'head -n -10 < f'],
  ['split', 'split -n 3/4 f'],
  ['split', 'split -n l/3/4 f'],
  ['split', 'split -n r/3/4 f'],
  ['tail', 'tail -c 100 f'],
  ['tail', 'tail -c 100 < f'],
  ['tail', 'tail -n 3 f'],
  ['tac', 'tac f'],
  ['wc', 'wc -c < f'],
  ['wc', 'wc -c < f; true'],
  ['wc', 'wc -l < f'],
  ['od', 'od -c -j 13000 f'],
  ['od', 'tail -c +13000 f | od -c'],
  ['shuf', 'shuf f | sort -n'],
  ['sort', 'sort -S 1M f'],
  ['dd', 'dd if=f bs=1000 skip=10 2> /dev/null'],
  ['cp', 'cp --sparse=always f copy; cat copy'],
  ['cp', 'cp f copy; cat copy'],
  ['rsync', 'rsync f copy; cat copy'],
  ['gzip', 'gzip < f | gzip -d'],
  ['cmp', 'cmp f whole'],
  ['python3', 'python3 -c \'import os; n = os.stat("f").st_size; print(len(open("f","rb").read(n)))\''],
  ['python3', 'python3 -c \'print(len(open("f","rb").read()))\''],
  ['python3', 'python3 -c \'import os; f = os.open("f", 0); os.fstat(f); print(os.fstat(f).st_size)\''],
  ['python3', 'python3 -c \'import mmap; f = open("f","rb"); print(len(mmap.mmap(f.fileno(), 0, prot=1)))\''],
  ['perl', 'perl -e \'open F, "f"; print -s F\''],
  ['perl', 'perl -e \'open F, "f"; local $/; print length(<F>)\''],
] as const)
  test(
    `as for the whole file, or an error: ${line}`,
    { skip: skip || (!hasCommand(needs) && `no ${needs}`) },
    async () => {
      const { read, events } = await readGrowing(line)
      const folder = mkdtempSync(join(tmpdir(), 'millrace-whole-'))
      writeFileSync(join(folder, 'f'), lines(1, 2000))
      writeFileSync(join(folder, 'whole'), lines(1, 2000))
      const plain = await start('sh', ['-c', line], { cwd: folder }).done
      rmSync(folder, { recursive: true })
      assert.equal(plain.code, 0, plain.stderr)
      if (read.code !== 0 || events.length > 0)
        assert.match(line, /^split/) // it refuses files of unknown size
      else assert.equal(read.stdout, plain.stdout)
    },
  )
