import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Case } from '../harness.ts'
import { missing, run } from '../flow/timed.ts'
import { makeFolder, runKept } from './run-kept.ts'

const TASKS = 100_000
const SNAKEMAKE_TARGETS = 1000
const FILES = 10_000
const FILE_BYTES = 2 ** 20

/** A folder where it has run to its end once. */
const prepared = new Map<string, string>()
function once(what: 'finished' | 'files' | 'names', tasks: number): string {
  let folder = prepared.get(what)
  if (folder === undefined) {
    prepared.set(what, (folder = makeFolder()))
    if (what === 'files') makeInputs(folder)
    runKept(folder, what, tasks, { checkpoint: 'all' })
    // What files look like is remembered when they are some milliseconds old.
    runKept(folder, what, tasks, { checkpoint: 'all', resume: true })
  }
  return folder
}

function makeInputs(folder: string): void {
  for (let n = 0; n < FILES; n++) {
    writeFileSync(join(folder, 'in', `${n}.dat`), `file ${n}\n`)
    truncateSync(join(folder, 'in', `${n}.dat`), FILE_BYTES)
  }
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

let ninja: string | null = null
/** As many files for ninja, which has made the outputs of the inputs once, so that it has a log of its own. */
function ninjaFolder(): string {
  if (ninja !== null) return ninja
  ninja = makeFolder()
  makeInputs(ninja)
  let text = `rule make\n  command = truncate -s ${FILE_BYTES} $out\n`
  for (let n = 0; n < FILES; n++) text += `build out/${n}.dat: make in/${n}.dat\n`
  writeFileSync(join(ninja, 'build.ninja'), text)
  run(ninja, ['ninja'])
  return ninja
}

let noNinja: string | null = null
/** Nothing to look at: what it takes to start and end. */
function emptyNinjaFolder(): string {
  if (noNinja !== null) return noNinja
  noNinja = makeFolder()
  writeFileSync(join(noNinja, 'build.ninja'), 'build all: phony\n')
  return noNinja
}

/** Milliseconds of the tasks with files, all resumed. */
function resumeFiles(): number {
  const folder = once('files', FILES)
  const { milliseconds, read } = runKept(folder, 'files', FILES, { checkpoint: 'all', resume: true })
  if (read > (FILES * FILE_BYTES) / 100) throw new Error(`it has read ${read} bytes of the files`)
  return milliseconds
}

/** `mvn -f bench/resume/nextflow dependency:copy-dependencies` puts it there. */
const NEXTFLOW = fileURLToPath(new URL('nextflow/target/dependency', import.meta.url))
const NEXTFLOW_TASKS = 50
const nextflowLine = (): string[] => ['java', '-cp', join(NEXTFLOW, '*'), 'nextflow.cli.Launcher', '-q']

let nextflow: string | null = null
function nextflowFolder(): string {
  if (nextflow !== null) return nextflow
  nextflow = makeFolder()
  writeFileSync(
    join(nextflow, 'main.nf'),
    `process one {\n  input: val i\n  output: path "\${i}.txt"\n  script: "echo $i > \${i}.txt"\n}\nworkflow { one(Channel.of(1..${NEXTFLOW_TASKS})) }\n`,
  )
  run(nextflow, [...nextflowLine(), 'run', 'main.nf'])
  return nextflow
}

/** What is left of a program whose tasks have all ended before. */
export function finished(): Case[] {
  const shape = { better: 'lower', take: 'median', rounds: 5 } as const
  return [
    {
      ...shape,
      name: 'finished',
      unit: 'us per task',
      about: `resume of ${TASKS} tasks that have all ended, within main; Snakemake (${SNAKEMAKE_TARGETS} targets) and Nextflow (${NEXTFLOW_TASKS} tasks) from start to end`,
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
          missing:
            missing('python3') ??
            missing('java') ??
            (existsSync(NEXTFLOW) ? undefined : 'its jars are not in bench/resume/nextflow'),
          rounds: 1,
          run: async () => {
            const folder = nextflowFolder()
            const { took } = run(folder, [...nextflowLine(), 'run', 'main.nf', '-resume'])
            const log = readFileSync(join(folder, '.nextflow.log'), 'utf8')
            if (!log.includes(`cachedCount=${NEXTFLOW_TASKS};`)) throw new Error('it ran its tasks again')
            return (took * 1000) / NEXTFLOW_TASKS
          },
        },
      ],
      goals: [{ of: 'millrace', upTo: 10, unit: 'us per task' }],
    },
    {
      ...shape,
      name: 'files',
      unit: 'ms',
      about: `resume of ${FILES} tasks that make a file of 1 MB of another, within main; ninja: as many inputs and outputs, all up to date`,
      arms: [
        {
          system: 'millrace',
          run: async () => resumeFiles(),
        },
        {
          system: 'ninja',
          missing: missing('python3') ?? missing('ninja'),
          run: async () => run(ninjaFolder(), ['ninja']).took,
        },
      ],
      goals: [{ of: 'millrace', against: 'ninja', atMost: 1.5 }],
    },
    {
      ...shape,
      name: 'files-alone',
      unit: 'ms',
      about: `what the files of that take: less the same ${FILES} tasks with the paths as texts; ninja: less its start and end`,
      arms: [
        {
          system: 'millrace',
          run: async () => {
            const how = { checkpoint: 'all', resume: true } as const
            return resumeFiles() - runKept(once('names', FILES), 'names', FILES, how).milliseconds
          },
        },
        {
          system: 'ninja',
          missing: missing('python3') ?? missing('ninja'),
          run: async () => run(ninjaFolder(), ['ninja']).took - run(emptyNinjaFolder(), ['ninja']).took,
        },
      ],
      goals: [{ of: 'millrace', against: 'ninja', atMost: 1.5 }],
    },
  ]
}
