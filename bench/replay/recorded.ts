import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findPolicy } from '../../src/core/schedule/policy.ts'
import { journalWorkload } from '../../src/simulate/input/journal-workload.ts'
import type { NodeModel } from '../../src/simulate/machine/platform.ts'
import { recordedPlatform } from '../../src/simulate/input/recorded-platform.ts'
import { readRecordedRun } from '../../src/simulate/input/recorded-run.ts'
import type { RecordedRun } from '../../src/simulate/input/recorded-run.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { cleanEnvironment, programPath } from '../run-program.ts'
import type { Constants } from './calibrate.ts'

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
      if (!actual) return device
      const { latency, stream } = actual
      return { ...device, actual, latency, ...(stream === undefined ? {} : { stream }) }
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
