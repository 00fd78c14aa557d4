import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Case } from '../harness.ts'
import { missing, run } from '../flow/timed.ts'
import { makeFolder, runKept } from './run-kept.ts'

const TASKS = 100_000
const SNAKEMAKE_TARGETS = 1000
const FILES = 10_000
const FILE_BYTES = 2 ** 20

/** A folder where it has run to its end once. */
const prepared = new Map<string, string>()
function once(what: 'finished' | 'files', tasks: number): string {
  let folder = prepared.get(what)
  if (folder === undefined) {
    prepared.set(what, (folder = makeFolder()))
    runKept(folder, what, tasks, { checkpoint: 'all' })
    // What files look like is remembered when they are some milliseconds old.
    runKept(folder, what, tasks, { checkpoint: 'all', resume: true })
  }
  return folder
}

let snakemake: string | null = null
function snakemakeFolder(): string {
  if (snakemake !== null) return snakemake
  snakemake = makeFolder()
  writeFileSync(
    join(snakemake, 'Snakefile'),
    `rule all:\n    input: expand('out/{i}.txt', i=range(${SNAKEMAKE_TARGETS}))\nrule one:\n    output: 'out/{i}.txt'\n    run:\n        open(output[0], 'w').write(wildcards.i)\n`,
  )
  for (let i = 0; i < SNAKEMAKE_TARGETS; i++) writeFileSync(join(snakemake, 'out', `${i}.txt`), String(i))
  run(snakemake, ['snakemake', '-c2', '--touch'])
  return snakemake
}

/** Ninja, which looks at the same files. */
function ninjaFolder(): string {
  const folder = once('files', FILES)
  let text = 'rule make\n  command = false\n  generator = 1\n'
  for (let n = 0; n < FILES; n++) text += `build out/${n}.dat: make\n`
  writeFileSync(join(folder, 'build.ninja'), text)
  return folder
}

/** What is left of a program whose tasks have all ended before. */
export function finished(): Case[] {
  const shape = { better: 'lower', take: 'median', rounds: 5 } as const
  return [
    {
      ...shape,
      name: 'finished',
      unit: 'us per task',
      about: `resume of ${TASKS} tasks that have all ended, within main; Snakemake: ${SNAKEMAKE_TARGETS} targets, from start to end`,
      arms: [
        {
          system: 'millrace',
          run: async () =>
            (runKept(once('finished', TASKS), 'finished', TASKS, { checkpoint: 'all', resume: true })
              .milliseconds *
              1000) /
            TASKS,
        },
        {
          system: 'snakemake',
          missing: missing('python3') ?? missing('snakemake'),
          rounds: 1,
          run: async () => (run(snakemakeFolder(), ['snakemake', '-c2']).took * 1000) / SNAKEMAKE_TARGETS,
        },
        {
          system: 'nextflow',
          missing: missing('nextflow') ?? 'it has not been measured yet',
          run: () => Promise.reject(new Error('it has not been measured yet')),
        },
      ],
      goals: [{ of: 'millrace', upTo: 10, unit: 'us per task' }],
    },
    {
      ...shape,
      name: 'files',
      unit: 'ms',
      about: `resume of ${FILES} tasks with files of 1 MB, within main; ninja looks at the same files`,
      arms: [
        {
          system: 'millrace',
          run: async () => {
            const folder = once('files', FILES)
            const { milliseconds, read } = runKept(folder, 'files', FILES, {
              checkpoint: 'all',
              resume: true,
            })
            if (read > (FILES * FILE_BYTES) / 100) throw new Error(`it has read ${read} bytes of the files`)
            return milliseconds
          },
        },
        {
          system: 'ninja',
          missing: missing('python3') ?? missing('ninja'),
          run: async () => run(ninjaFolder(), ['ninja']).took,
        },
      ],
      goals: [{ of: 'millrace', against: 'ninja', atMost: 1.5 }],
    },
  ]
}
