import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))
export const bin = join(root, 'bin', 'millrace.js')

/** Runs a program to its end: milliseconds, and the most memory that it had. */
export function run(
  cwd: string,
  [program = '', ...args]: readonly string[],
): { took: number; memory: number } {
  const script = String.raw`import resource, subprocess, sys, time
t = time.monotonic(); code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(time.monotonic() - t, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)`
  const { stdout } = spawnSync('python3', ['-c', script, program, ...args], { cwd, encoding: 'utf8' })
  const [took = NaN, memory = NaN, code = 1] = stdout.trim().split(' ').map(Number)
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
  return { took: took * 1000, memory: memory * 1024 }
}

export const missing = (program: string): string | undefined =>
  spawnSync('sh', ['-c', `command -v ${program}`]).status === 0 ? undefined : `${program} is not installed`
