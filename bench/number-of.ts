import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const pathOf = (program: string): string => new URL(`./programs/${program}`, import.meta.url).pathname

/** The number that a program prints last, in a folder of its own. */
export async function numberOf(
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const env = {
    ...process.env,
    ...environment,
    MILLRACE_PROGRESS: 'none',
    MILLRACE_CPUS: process.env['BENCH_CPUS'] ?? '2',
  }
  try {
    const { stdout } = await run(words[0] as string, words.slice(1), { cwd: folder, env })
    return Number(stdout.trim().split('\n').at(-1))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The same of a program of ours. */
export function withProgram(
  name: string,
  words: readonly string[],
  environment: Record<string, string> = {},
): Promise<number> {
  const tsx = name.endsWith('.ts') ? ['--import', import.meta.resolve('tsx')] : []
  return numberOf([process.execPath, ...tsx, pathOf(name), ...words], environment)
}
