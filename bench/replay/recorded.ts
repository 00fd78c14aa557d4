import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPolicy } from '../../src/core/policy.ts'
import { journalWorkload } from '../../src/simulate/journal-workload.ts'
import type { NodeModel } from '../../src/simulate/platform.ts'
import { recordedPlatform } from '../../src/simulate/recorded-platform.ts'
import { readRecordedRun } from '../../src/simulate/recorded-run.ts'
import type { RecordedRun } from '../../src/simulate/recorded-run.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { cleanEnvironment, programPath } from '../run-program.ts'

/** What was found of a device before the run, in bytes per second and milliseconds. */
export interface Constants {
  read: number
  write: number
  latency: number
}

/** Runs a program of bench/programs with its journal, and gives what the journal tells. */
export async function recordProgram(name: string, args: readonly (string | number)[]): Promise<RecordedRun> {
  const cwd = mkdtempSync(join(tmpdir(), 'millrace-bench-replay-'))
  try {
    execFileSync(process.execPath, [programPath(name), ...args.map(String)], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 120_000,
      env: {
        ...cleanEnvironment(),
        MILLRACE_CPUS: '2',
        MILLRACE_PROGRESS: 'none',
        MILLRACE_JOURNAL: '1',
        UV_THREADPOOL_SIZE: '64',
      },
    })
    return await readRecordedRun(journalIn(cwd))
  } finally {
    rmSync(cwd, { recursive: true, force: true })
  }
}

/** The journal of the only run that was made in a folder. */
export function journalIn(folder: string): string {
  const runs = join(folder, '.millrace', 'runs')
  const names = existsSync(runs)
    ? readdirSync(runs).filter(one => existsSync(join(runs, one, 'journal')))
    : []
  if (names.length !== 1) throw new Error(`${folder} has ${names.length} runs, not one`)
  return join(runs, names[0] as string, 'journal')
}

/** Seconds from the first call to the end of the last task. */
export function realSeconds({ tasks }: RecordedRun): number {
  const [first] = tasks
  const end = tasks.reduce((last, { endedAt }) => Math.max(last, endedAt), 0)
  return (end - (first?.gap ?? 0)) / 1000
}

export interface Changes {
  policy?: string
  ioPolicy?: string
  /** Of the node, such as its page cache. */
  node?: Partial<NodeModel>
}

/** The same from the replay, on this machine with what was measured of its devices. */
export async function predictedSeconds(
  run: RecordedRun,
  constants: Readonly<Record<string, Constants>>,
  { policy = run.facts.policy, ioPolicy = run.facts.io?.policy ?? 'fcfs', node = {} }: Changes = {},
): Promise<number> {
  const { devices = [], io } = run.facts
  const measured: RecordedRun = {
    ...run,
    facts: { ...run.facts, devices: devices.map(device => ({ ...device, ...constants[device.name] })) },
  }
  const platform = recordedPlatform(run)
  const nodes = platform.nodes.map(one => ({
    ...one,
    ...node,
    storage: (one.storage ?? []).map(device => {
      const actual = constants[device.name]
      return actual ? { ...device, actual, latency: actual.latency } : device
    }),
  }))
  const outcome = await simulate(journalWorkload(measured), {
    platform: { nodes },
    policy: findPolicy(policy),
    ioPolicy,
    flush: io?.flush ?? 'off',
    prefetch: io?.prefetch ?? false,
  })
  return outcome.tasksEnded - (run.tasks[0]?.gap ?? 0) / 1000
}

/** Writes files as tasks do, two at a time, and says what the device made of it. */
export async function measureWriting(folder: string, bytes: number, files: number): Promise<Constants> {
  const data = Buffer.alloc(bytes, 1)
  const save = async (name: string, content: Buffer): Promise<void> => {
    const path = join(folder, name)
    const file = await open(path, 'w')
    await file.write(content)
    await file.sync()
    await file.close()
    rmSync(path)
  }
  await save('first', data)
  const began = performance.now()
  for (let i = 0; i < files; i += 2) await Promise.all([save('a', data), save('b', data)])
  const took = performance.now() - began
  const small: number[] = []
  for (let i = 0; i < 5; i++) {
    const start = performance.now()
    await save('small', Buffer.alloc(4096))
    small.push(performance.now() - start)
  }
  const latency = small.sort((a, b) => a - b)[2] as number
  const rate = (bytes * files) / ((took - (latency * files) / 2) / 1000)
  return { read: rate, write: rate, latency }
}
