import { spawnSync } from 'node:child_process'
import { lastLine, programPath } from './run-program.ts'

/** Dask is never installed for this; MILLRACE_BENCH_PYTHON names a Python that has it. */
const python = process.env['MILLRACE_BENCH_PYTHON'] ?? 'python3'

let answer: { missing: string | undefined } | null = null

export function daskMissing(): string | undefined {
  answer ??= {
    missing:
      spawnSync(python, ['-c', 'import distributed'], { stdio: 'ignore' }).status === 0
        ? undefined
        : `${python} has no Dask; MILLRACE_BENCH_PYTHON may name one that does`,
  }
  return answer.missing
}

/** Seconds. */
export async function runDask(
  kind: 'distributed' | 'threads' | 'chain-distributed' | 'chain-threads',
  tasks: number,
): Promise<number> {
  return Number(await lastLine(python, [programPath('dask_tasks.py'), kind, String(tasks)]))
}
