import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { bin, makeFolder, millrace } from './folder.ts'

const FULL = '/dev/full'

const FLOW = `import { rule, sh, target } from 'millrace/flow'
rule('{name}.txt', [], ({ out }) => sh\`echo said; echo made > \${out}\`)
target('all', ['a.txt', 'b.txt'])`

const PROGRAM = `import { writeFileSync } from 'node:fs'
import { main, task, waitOn } from 'millrace'
export const twice = task({ name: 'twice' }, (n) => 2 * n)
main(async () => {
  for (let i = 0; i < 3; i++) console.log(await waitOn(twice(i)))
  writeFileSync('a.txt', '')
})`

/** With stdout and stderr where this says: a disk that is full, or a pipe. */
async function run(
  folder: string,
  args: readonly string[],
  place: { stdout: 'pipe' | 'full'; stderr: 'pipe' | 'full' },
): Promise<{ code: number | null; text: string }> {
  const full = openSync(FULL, 'w')
  const at = (where: 'pipe' | 'full') => (where === 'full' ? full : 'pipe')
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: folder,
    stdio: ['ignore', at(place.stdout), at(place.stderr)],
  })
  closeSync(full)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (part: Buffer) => (text += String(part)))
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, text }
}

const needsFull = (context: TestContext): boolean => {
  if (existsSync(FULL)) return true
  context.skip(`there is no ${FULL}`)
  return false
}

for (const [name, file, text, args] of [
  ['a workflow', 'flow.ts', FLOW, ['make']],
  ['a program', 'app.mjs', PROGRAM, ['run', 'app.mjs']],
] as const) {
  test(`${name} goes on when its progress cannot be written`, async context => {
    if (!needsFull(context)) return
    const folder = makeFolder({ [file]: text })
    const { code } = await run(folder, args, { stdout: 'pipe', stderr: 'full' })
    assert.equal(code, 0)
    assert.ok(existsSync(join(folder, 'a.txt')))
  })

  test(`${name} goes on when its results cannot be written, and tells it at the end`, async context => {
    if (!needsFull(context)) return
    const folder = makeFolder({ [file]: text })
    const words = [args[0], '--progress', 'json', ...args.slice(1)]
    const { code, text: told } = await run(folder, words, { stdout: 'full', stderr: 'pipe' })
    assert.equal(code, 1)
    assert.match(told, /^millrace: what was printed is lost: stdout cannot be written \(ENOSPC\)\n$/)
    assert.ok(existsSync(join(folder, 'a.txt')))
  })
}

test('an answer that cannot be written is an error without a stack', async context => {
  if (!needsFull(context)) return
  const folder = makeFolder({ 'flow.ts': FLOW })
  await millrace(folder, ['make'])
  for (const args of [['runs'], ['show', '--json'], ['make', '-n', '--force'], ['--help']]) {
    const { code, text } = await run(folder, args, { stdout: 'full', stderr: 'pipe' })
    assert.equal(code, 1, args.join(' '))
    assert.match(text, /^millrace: what was printed is lost: .*\n$/, args.join(' '))
  }
})

test('a journal that cannot be written to its end is told, and fails what is made from it', async () => {
  const many = PROGRAM.replace('i < 3', 'i < 300').replace("writeFileSync('a.txt', '')", '')
  const folder = makeFolder({ 'app.mjs': many })
  for (const [options, wanted] of [
    [[], 0],
    [['--trace', 'trace.json'], 1],
  ] as const) {
    const words = [process.execPath, bin, 'run', 'app.mjs', '--progress', 'plain', ...options]
    const child = spawn('sh', ['-c', 'ulimit -f 1; exec "$@"', 'sh', ...words], { cwd: folder })
    let text = ''
    child.stderr.on('data', (part: Buffer) => (text += String(part)))
    child.stdout.resume()
    const code = await new Promise<number | null>(resolve => child.on('close', resolve))
    assert.equal(code, wanted)
    assert.match(text, /the journal .* cannot be written/)
  }
})
