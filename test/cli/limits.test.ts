import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { bin, makeFolder } from './folder.ts'

const PROGRAM = `
import { FILE_IN, FILE_OUT, IN, command, main, task, waitOn } from 'millrace'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
export const add = task({}, (a: number, b: number) => a + b)
// Not asynchronous: such tasks get threads of their own.
export const write = task({ io: true, params: [FILE_OUT, IN] }, (path: string, text: string) => {
  const end = Date.now() + 10
  while (Date.now() < end) continue
  writeFileSync(path, text)
})
export const copy = command({ params: [FILE_IN, FILE_OUT] }, (from, to) => ['cp', from, to])
export const read = task({ io: true, params: [FILE_IN] }, async (path: string) => (await readFile(path, 'utf8')).length)
main(async () => {
  let sum: any = 0
  for (let i = 0; i < 60; i++) {
    write(\`f\${i}.txt\`, 'x'.repeat(i))
    copy(\`f\${i}.txt\`, \`g\${i}.txt\`)
    sum = add(sum, read(\`g\${i}.txt\`))
  }
  console.log('sum', await waitOn(sum))
})
`

interface Result {
  readonly text: string
  readonly isDone: boolean
}

/** Either the right result or a code, and never a hang, a signal or a stack. */
function tryWith(folder: string, limit: string, shell: readonly string[]): Result {
  const script = `${limit}; exec "$0" "$@"`
  const args = [process.execPath, bin, 'run', 'app.ts', '--progress', 'none']
  const [program = '', ...rest] = [...shell, 'bash', '-c', script, ...args]
  const { stdout, stderr, status, signal } = spawnSync(program, rest, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, HOME: folder },
  })
  assert.equal(signal, null, `${limit}: ${stderr}`)
  if (status === 0) assert.equal(stdout, 'sum 1770\n', limit)
  else
    assert.match(stderr, /^millrace: at most \d+ .* needed\n.*ulimit.*\[MR_LIMIT\]\n$/, `${limit}: ${stderr}`)
  return { text: stderr, isDone: status === 0 }
}

test('with few descriptors it works, or says how many are needed', { timeout: 300_000 }, () => {
  const folder = makeFolder({ 'app.ts': PROGRAM })
  const { text } = tryWith(folder, 'ulimit -n 24', [])
  const needed = Number(/and (\d+) are needed/.exec(text)?.[1])
  assert.ok(needed > 24, text)
  for (const limit of [32, 38, needed - 1]) {
    if (limit < needed) assert.ok(!tryWith(folder, `ulimit -n ${limit}`, []).isDone, String(limit))
  }
  for (const limit of [needed, needed + 3, needed + 10, needed + 34, needed + 60])
    assert.ok(tryWith(folder, `ulimit -n ${limit}`, []).isDone, String(limit))
})

test('with few processes it works, or says how many are needed', { timeout: 300_000 }, context => {
  const shell = ['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups']
  if (process.getuid?.() !== 0 || spawnSync(shell[0] ?? '', [...shell.slice(1), 'true']).status !== 0)
    return context.skip('only root can become another user')
  const folder = makeFolder({ 'app.ts': PROGRAM })
  for (const path of [dirname(folder), folder]) chmodSync(path, 0o777)
  const { text, isDone } = tryWith(folder, 'ulimit -u 20', shell)
  assert.ok(!isDone)
  const [, running, more] = /of which (\d+) do, and (\d+) more are needed/.exec(text) ?? []
  const needed = Number(running) + Number(more)
  for (const limit of [needed + 4, needed + 20, needed + 45, needed + 100])
    assert.ok(tryWith(folder, `ulimit -u ${limit}`, shell).isDone, String(limit))
})
