import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Board, checkText, planLines, problemText, streamTools } from '../../src/stream/index.ts'
import { cleanEnvironment, programPath } from '../run-program.ts'
import type { Place } from './place.ts'

/** Options and groups of files of bench/programs/stream-step.c, without the ones that the way of running adds. */
export interface Step {
  name: string
  args: string[]
  /** One line of arguments for each instance when there are several. */
  instances?: string[][]
  /** Commit and firing rules of its outputs. */
  outputs?: string[]
  inputs?: string[]
  streaming?: object[]
}

export interface Workflow {
  /** Directories that are there before the first step. */
  folders?: string[]
  /** Makes the files that the workflow starts from, in the place of the run; not timed. */
  prepare?: string[]
  /** In the order of a batch run; steps in one inner list run at once even then. */
  stages: Step[][]
}

const FOLDER = join(tmpdir(), `millrace-bench-stream-${process.getuid?.() ?? 0}`)

/** Builds a program of bench/programs or of the tests, once per content. */
export function buildProgram(source: string): string {
  const text = readFileSync(source)
  const target = join(FOLDER, createHash('sha256').update(text).digest('hex').slice(0, 16))
  if (existsSync(target)) return target
  mkdirSync(FOLDER, { recursive: true })
  const fresh = `${target}.${process.pid}`
  const args = ['-O2', '-x', 'c', '-o', fresh, source]
  const built = spawnSync(process.env['CC'] ?? 'cc', args, { encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`cannot build ${source}: ${built.stderr}`)
  renameSync(fresh, target)
  return target
}

export const stepProgram = (): string => buildProgram(programPath('stream-step.c'))

const LIMIT = 150_000

interface Started {
  done: Promise<void>
}

function start(program: string, args: readonly string[], cwd: string): Started {
  const child = spawn(program, args, { cwd, env: cleanEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT)
  let said = ''
  child.stderr.on('data', (text: Buffer) => (said += String(text)))
  const done = new Promise<void>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', code => {
      clearTimeout(timer)
      if (code === 0) resolve()
      else reject(new Error(`${args.join(' ')} ended with ${code}: ${said.trim().split('\n').at(-1)}`))
    })
  })
  done.catch(() => {}) // The waiter gets the error.
  return { done }
}

/** `@name` is a file in the place of the run, also when the streams are elsewhere. */
const argvs = (step: Step): string[][] => (step.instances ?? [[]]).map(more => [...step.args, ...more])
const plainly = (args: string[]): string[] => args.map(word => word.replace(/^@/, ''))

async function inFolder<T>(place: Place, workflow: Workflow, body: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(place.root, 'millrace-bench-'))
  try {
    for (const folder of workflow.folders ?? []) mkdirSync(join(dir, folder), { recursive: true })
    return await body(dir)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function prepare(place: Place, workflow: Workflow, dir: string): Promise<void> {
  if (workflow.prepare === undefined) return
  const cold = place.cold ? ['-s'] : []
  await start(stepProgram(), [...cold, ...workflow.prepare], dir).done
}

/** Seconds for one stage after the other, as workflow managers run them. */
export function batch(place: Place, workflow: Workflow): Promise<number> {
  return inFolder(place, workflow, async dir => {
    await prepare(place, workflow, dir)
    const began = performance.now()
    for (const stage of workflow.stages) {
      const cold = place.cold ? ['-s'] : []
      const all = stage.flatMap(argvs).map(args => start(stepProgram(), [...cold, ...plainly(args)], dir))
      await Promise.all(all.map(one => one.done))
    }
    return (performance.now() - began) / 1000
  })
}

let boards = 0

/** Seconds for all steps at once under the library. Inputs are where the batch run has them. */
export async function streamed(
  place: Place,
  workflow: Workflow,
  fire: 'update' | 'no_update',
): Promise<number> {
  const tools = await streamTools()
  return inFolder(place, { ...workflow, folders: [] }, from =>
    inFolder({ root: '/dev/shm', cold: false }, workflow, async dir => {
      await prepare(place, workflow, from)
      const steps = workflow.stages.flat()
      const graph = steps.map(({ name, inputs, outputs, streaming }) => ({
        name,
        ...(inputs === undefined ? {} : { input_stream: inputs }),
        ...(outputs === undefined ? {} : { output_stream: outputs }),
        streaming:
          streaming ?? (outputs ?? []).map(file => ({ name: file, committed: 'on_close', mode: fire })),
      }))
      const text = JSON.stringify({ name: 'bench', IO_Graph: graph, permanent: ['*'] })
      const { plan, problems } = checkText(text, 'bench.json')
      if (plan === undefined) throw new Error(problems.map(problemText).join('\n'))
      const board = new Board(tools, `bench.${process.pid}.${boards++}`)
      const instances = new Map(steps.map(step => [step.name, step.instances?.length ?? 1]))
      await board.create(planLines(plan, { dir, workflow: board.workflow, instances }))
      try {
        const began = performance.now()
        const cold = place.cold ? ['-s'] : []
        const started = steps.flatMap(step =>
          argvs(step).map(args => {
            // Only what the last step leaves behind has to reach the disk; the rest are streams.
            const own = step.outputs === undefined && args.includes('OUT') ? cold : []
            const words = [...own, ...args].map(word => word.replace(/^@/, `${from}//`))
            const exec = ['exec', '-w', board.workflow, '--lib', tools.library, '--app', step.name, '--']
            return start(tools.board, [...exec, stepProgram(), ...words], dir)
          }),
        )
        await Promise.all(started.map(one => one.done))
        return (performance.now() - began) / 1000
      } finally {
        await board.destroy(true)
      }
    }),
  )
}

/** Seconds for a producer and a consumer joined by a pipe of 1 MiB. */
export async function piped(producer: string[], consumer: string[]): Promise<number> {
  const words = (args: string[]): string => [stepProgram(), ...args].map(word => `'${word}'`).join(' ')
  const began = performance.now()
  await start('bash', ['-o', 'pipefail', '-c', `${words(producer)} | ${words(consumer)}`], '/tmp').done
  return (performance.now() - began) / 1000
}
