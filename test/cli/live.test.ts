import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { divert, writerOf } from '../../src/runtime/standard-output.ts'
import { bin, makeFolder, millrace } from './folder.ts'

const printing = `
import { isMainThread } from 'node:worker_threads'
import { task, main, waitOn } from 'millrace'
export const talk = task({ name: 'talk' }, async () => {
  console.log('from a task')
  // Long enough for the block to be painted a few times.
  await new Promise(resolve => setTimeout(resolve, 400))
})
main(async () => {
  console.log('first')
  process.stdout.write('half ')
  console.error('noise')
  await waitOn(talk())
  process.stdout.write('line\\n')
})
if (isMainThread) console.log('loaded')
`

/** What remains of a text on a screen: each repaint goes up over the block and clears it. */
function remaining(text: string): string[] {
  const lines: string[] = []
  // oxlint-disable-next-line no-control-regex -- this is a terminal
  for (const piece of text.replaceAll('\r\n', '\n').split(/(?=\u001b\[\d+A)/)) {
    // oxlint-disable-next-line no-control-regex -- this is a terminal
    const [up, count] = /^\u001b\[(\d+)A\r\u001b\[J/.exec(piece) ?? ['', '0']
    lines.splice(lines.length - Number(count))
    lines.push(...piece.slice(up.length).split('\n').slice(0, -1))
  }
  return lines
}

test('on one terminal, prints stay above the block and none is eaten', { skip: !hasScript() }, () => {
  const folder = makeFolder({ 'app.mjs': printing })
  const { stdout, status } = spawnSync(
    'script',
    ['-qec', `'${process.execPath}' '${bin}' run app.mjs --no-color`, '/dev/null'],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, TERM: 'xterm', LANG: 'C.UTF-8', CI: '' } },
  )
  assert.equal(status, 0)
  assert.match(stdout, /\[0\/1\] talk 1 running/)
  const lines = remaining(stdout)
  const summary = lines.findIndex(line => line.startsWith('done '))
  assert.deepEqual(lines.slice(0, summary).toSorted(), [
    'first',
    'from a task',
    'half noise',
    'line',
    'loaded',
  ])
})

test('results in a file stay whole while progress is on the terminal', { skip: !hasScript() }, () => {
  const folder = makeFolder({ 'app.mjs': printing })
  const { stdout } = spawnSync(
    'script',
    ['-qec', `'${process.execPath}' '${bin}' run app.mjs --no-color > results.txt`, '/dev/null'],
    { cwd: folder, encoding: 'utf8', env: { ...process.env, TERM: 'xterm', LANG: 'C.UTF-8', CI: '' } },
  )
  assert.match(stdout, /\[0\/1\] talk 1 running/)
  const results = readFileSync(join(folder, 'results.txt'), 'utf8')
  assert.equal(results.replace('from a task\n', ''), 'loaded\nfirst\nhalf line\n')
  assert.ok(results.includes('from a task\n'))
})

test('with pipes for both, live progress leaves stdout alone', async () => {
  const folder = makeFolder({ 'app.mjs': printing })
  const { code, stdout, stderr } = await millrace(folder, [
    'run',
    'app.mjs',
    '--progress',
    'live',
    '--no-color',
  ])
  assert.equal(code, 0)
  assert.equal(stdout.replace('from a task\n', ''), 'loaded\nfirst\nhalf line\n')
  assert.ok(remaining(stderr).includes('noise'))
})

test('a diverted stream takes bytes cut anywhere, calls back, and can be given back in any order', async () => {
  const written: string[] = []
  const stream = { fd: 1, write: (text: string) => written.push(text) } as unknown as typeof process.stdout
  const first: string[] = []
  const second: string[] = []
  const endFirst = divert(stream, text => first.push(text))
  const bytes = Buffer.from('mühle')
  stream.write(bytes.subarray(0, 2))
  await new Promise<void>(resolve => stream.write(bytes.subarray(2), () => resolve()))
  stream.write('c3a4', 'hex')
  assert.equal(first.join(''), 'mühleä')
  const endSecond = divert(stream, text => second.push(text))
  writerOf(stream)('past both')
  assert.deepEqual(written, ['past both'])
  endFirst()
  stream.write('to the second')
  assert.deepEqual(second, ['to the second'])
  endSecond()
  stream.write('at last')
  assert.deepEqual(written, ['past both', 'at last'])
})

function hasScript(): boolean {
  return spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0
}
