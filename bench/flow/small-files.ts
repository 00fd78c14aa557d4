import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Case } from '../harness.ts'
import { bin, missing, root, run } from './timed.ts'

const TARGETS = 1500

let folder: string | null = null

/** A folder where nothing is made yet. */
function prepared(): string {
  folder ??= make()
  for (const name of ['out', '.millrace']) rmSync(join(folder, name), { recursive: true, force: true })
  mkdirSync(join(folder, 'out'))
  return folder
}

function make(): string {
  const made = mkdtempSync(join(tmpdir(), 'millrace-small-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  for (const name of ['in', 'node_modules']) mkdirSync(join(made, name))
  symlinkSync(root, join(made, 'node_modules', 'millrace'))
  writeFileSync(join(made, 'package.json'), '{ "type": "module" }')
  const numbers = Array.from({ length: TARGETS }, (_, i) => i)
  for (const i of numbers) writeFileSync(join(made, 'in', `${i}.txt`), `${i}\n`)
  writeFileSync(
    join(made, 'flow.ts'),
    `import { expand, rule, target } from 'millrace/flow'
rule('out/{i}.txt', ['in/{i}.txt'], ({ out, in: [text] }) => ['cp', text, out])
target('all', expand('out/{i}.txt', { i: Array.from({ length: ${TARGETS} }, (_, i) => i) }))
`,
  )
  const targets = numbers.map(i => `out/${i}.txt`).join(' ')
  writeFileSync(join(made, 'Makefile'), `all: ${targets}\nout/%.txt: in/%.txt\n\tcp $< $@\n`)
  return made
}

/** What a task with a small file costs: most of it are calls to the file system. */
export function smallFiles(): Case[] {
  const unavailable = missing('python3') ?? missing('make')
  const arm = (system: string, words: readonly string[]) => ({
    system,
    missing: unavailable,
    run: async () => run(prepared(), words).took / TARGETS,
  })
  return [
    {
      name: 'small-files',
      about: `a rule that copies a small file, ${TARGETS} times, from start to end`,
      unit: 'ms per file',
      better: 'lower',
      take: 'median',
      rounds: 7,
      arms: [
        arm('millrace make', [process.execPath, bin, 'make', '-j', '2']),
        arm('make', ['make', '-s', '-j', '2']),
      ],
      goals: [{ of: 'millrace make', against: 'make', atMost: 1 }],
    },
  ]
}
