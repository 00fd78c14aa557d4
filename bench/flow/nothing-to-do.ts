import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Case } from '../harness.ts'
import { bin, missing, root, run } from './timed.ts'

const TARGETS = 100_000

let folder: string | null = null

/** A folder where everything is made already; takes a minute, once. */
function prepared(): string {
  if (folder) return folder
  const made = mkdtempSync(join(tmpdir(), 'millrace-flow-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  for (const name of ['in', 'out', 'node_modules']) mkdirSync(join(made, name))
  symlinkSync(root, join(made, 'node_modules', 'millrace'))
  writeFileSync(join(made, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(made, 'flow.ts'),
    `import { rule, sh, target, expand } from 'millrace/flow'
rule('out/{i}.txt', ['in/{i}.txt'], ({ out, in: [text] }) => sh\`cp \${text} \${out}\`)
target('all', expand('out/{i}.txt', { i: Array.from({ length: ${TARGETS} }, (_, i) => i) }))
`,
  )
  // `generator` lets ninja do without a log of a run that it never made.
  let ninja = 'rule cp\n  command = cp $in $out\n  generator = 1\n'
  let make = `all: ${Array.from({ length: TARGETS }, (_, i) => `out/${i}.txt`).join(' ')}\n`
  for (let i = 0; i < TARGETS; i++) {
    writeFileSync(join(made, 'in', `${i}.txt`), `${i}\n`)
    ninja += `build out/${i}.txt: cp in/${i}.txt\n`
    make += `out/${i}.txt: in/${i}.txt\n\tcp $< $@\n`
  }
  for (let i = 0; i < TARGETS; i++) writeFileSync(join(made, 'out', `${i}.txt`), `${i}\n`)
  writeFileSync(join(made, 'build.ninja'), ninja)
  writeFileSync(join(made, 'Makefile'), make)
  run(made, [process.execPath, bin, 'make', '--touch'])
  return (folder = made)
}

/** A workflow with one target, for what the program takes by itself. */
function small(): string {
  const made = join(prepared(), 'small')
  if (existsSync(made)) return made
  mkdirSync(made)
  writeFileSync(join(made, 'a'), 'a')
  writeFileSync(
    join(made, 'flow.ts'),
    `import { rule } from 'millrace/flow'\nrule('b', ['a'], ({ out, in: [a] }) => ['cp', a, out])\n`,
  )
  run(made, [process.execPath, bin, 'make'])
  return made
}

export function nothingToDo(): Case[] {
  const unavailable = missing('python3') ?? (existsSync(bin) ? undefined : 'bin/millrace.js is not there')
  const arm = (system: string, words: readonly string[], absent?: string) => ({
    system,
    missing: unavailable ?? absent,
    run: async () => run(prepared(), words).took,
  })
  const shape = { unit: 'ms', better: 'lower', take: 'median', rounds: 5 } as const
  const ninja = arm('ninja', ['ninja'], missing('ninja'))
  return [
    {
      ...shape,
      name: 'nothing-to-do',
      about: `${TARGETS} targets that are up to date, from start to end`,
      arms: [
        arm('millrace make', [process.execPath, bin, 'make']),
        ninja,
        // It takes half a minute.
        { ...arm('make', ['make', '-s'], missing('make')), rounds: 1 },
      ],
      goals: [{ of: 'millrace make', against: 'ninja', atMost: 2 }],
    },
    {
      ...shape,
      name: 'dry-run',
      about: `the same as a dry run`,
      arms: [
        arm('millrace make --dry-run', [process.execPath, bin, 'make', '--dry-run']),
        arm('ninja -n', ['ninja', '-n'], missing('ninja')),
      ],
      goals: [{ of: 'millrace make --dry-run', against: 'ninja -n', atMost: 2 }],
    },
    {
      ...shape,
      name: 'memory',
      unit: 'bytes per target',
      about: 'peak memory with 100,000 targets that are up to date, less that with one',
      rounds: 3,
      arms: [
        {
          system: 'millrace make',
          missing: unavailable,
          run: async () => {
            const one = run(small(), [process.execPath, bin, 'make']).memory
            return (run(prepared(), [process.execPath, bin, 'make']).memory - one) / TARGETS
          },
        },
      ],
      goals: [{ of: 'millrace make', below: 1000, unit: 'bytes per target' }],
    },
  ]
}
