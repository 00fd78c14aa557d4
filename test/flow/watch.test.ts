import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Running, makeFolder } from '../cli/folder.ts'

const FLOW = `
import { glob, rule, sh } from 'millrace/flow'
import { head } from './head.ts'
rule('out', glob('in/*.txt'), ({ out, in: texts }) => sh\`echo \${head} > \${out}; cat /dev/null \${texts} >> \${out}\`)
`
const WATCHING = 'watching'

/** Waits for so many runs to have ended, however long they take. */
async function runs(running: Running, count: number): Promise<void> {
  for (;;) {
    const seen = running.stderr.split(WATCHING).length - 1
    if (seen >= count) return
    if (running.process.exitCode !== null || running.process.killed)
      throw new Error(`ended: ${running.stderr}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

test('--watch makes again when a file is edited, comes or goes, and outlives a broken workflow', async () => {
  const folder = makeFolder({ 'flow.ts': FLOW, 'head.ts': "export const head = 'h'", 'in/a.txt': '1\n' })
  const running = new Running(folder, ['make', '--watch'], { MILLRACE_PROGRESS: 'plain' })
  const text = (): string => readFileSync(join(folder, 'out'), 'utf8')
  const change = (path: string, content: string): void => writeFileSync(join(folder, path), content)
  await runs(running, 1)
  assert.equal(text(), 'h\n1\n')
  change('in/a.txt', '2\n')
  await runs(running, 2)
  assert.equal(text(), 'h\n2\n')
  change('in/b.txt', '3\n')
  await runs(running, 3)
  assert.equal(text(), 'h\n2\n3\n')
  rmSync(join(folder, 'in/a.txt'))
  await runs(running, 4)
  assert.equal(text(), 'h\n3\n')
  change('head.ts', "export const head = 'new'")
  await runs(running, 5)
  assert.equal(text(), 'new\n3\n')
  change('flow.ts', 'rule(')
  await runs(running, 6)
  assert.match(running.stderr, /flow\.ts could not be loaded/)
  change('flow.ts', FLOW)
  await runs(running, 7)
  rmSync(join(folder, 'in'), { recursive: true })
  await runs(running, 8)
  assert.equal(text(), 'new\n')
  mkdirSync(join(folder, 'in'))
  change('in/c.txt', '4\n')
  for (let count = 9; text() !== 'new\n4\n'; count++) await runs(running, count)
  running.process.kill('SIGINT')
  assert.equal((await running.ended).code, 0)
})

test('--watch makes again when what was missing comes, and when what a failed command reads is edited', async () => {
  const folder = makeFolder({
    'flow.mjs': `import { rule, sh } from 'millrace/flow'
rule('middle', 'in/source', ({ out, in: from }) => sh\`grep good \${from} > \${out}\`)
rule('out', 'middle', ({ out, in: from }) => ['cp', from, out])`,
    'in/other': '',
  })
  const running = new Running(folder, ['make', 'out', '--watch'], { MILLRACE_PROGRESS: 'plain' })
  await runs(running, 1)
  assert.match(running.stderr, /in\/source, which middle is made of, does not exist/)
  writeFileSync(join(folder, 'in/source'), 'bad\n')
  await runs(running, 2)
  writeFileSync(join(folder, 'in/source'), 'good\n')
  await runs(running, 3)
  while (!existsSync(join(folder, 'out'))) await new Promise(resolve => setTimeout(resolve, 20))
  running.process.kill('SIGINT')
  assert.equal((await running.ended).code, 0)
  assert.equal(readFileSync(join(folder, 'out'), 'utf8'), 'good\n')
})
