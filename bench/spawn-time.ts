import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cleanEnvironment } from './run-program.ts'

/** Milliseconds from starting node with these arguments to its end. */
export const untilExit = (args: readonly string[]): Promise<number> => timed(args, 'close', true)

/** Milliseconds from starting the program to the first thing that it prints. */
export const untilLine = (program: string, journal: boolean): Promise<number> =>
  timed([program], 'data', journal)

function timed(args: readonly string[], until: 'close' | 'data', journal: boolean): Promise<number> {
  const cwd = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  const env = {
    ...cleanEnvironment(),
    MILLRACE_CPUS: '2',
    MILLRACE_PROGRESS: 'none',
    MILLRACE_JOURNAL: journal ? '1' : '0',
  }
  return new Promise((resolve, reject) => {
    const start = performance.now()
    let took: number | null = null
    const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.on('data', () => (took ??= performance.now() - start))
    child.on('error', reject)
    child.on('close', code => {
      const ended = performance.now() - start
      rmSync(cwd, { recursive: true, force: true })
      if (code !== 0) reject(new Error(`${args.join(' ')} ended with ${code}`))
      else if (until === 'close') resolve(ended)
      else if (took === null) reject(new Error(`${args.join(' ')} printed nothing`))
      else resolve(took)
    })
  })
}
