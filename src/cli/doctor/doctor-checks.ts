import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, statfs, writeFile } from 'node:fs/promises'
import { availableParallelism, totalmem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { BuildFailure } from '../../native/build.ts'
import { spawnTool } from '../../native/spawn-tool.ts'
import { formatBytes, plural } from '../../report/format.ts'
import { runsFolder } from '../../report/journal/run-paths.ts'
import { cpuLimit, memoryLimit } from './doctor-limits.ts'

export interface Finding {
  state: 'ok' | 'warn' | 'fail'
  found: string
  /** What to do about it. */
  todo?: string
}

const GIB = 2 ** 30
const MIB = 2 ** 20
const FEW_FILES = 4096

export const CHECKS: Readonly<Record<string, () => Promise<Finding>>> = {
  node: async () => judgeNode(process.versions.node),
  cpus: async () => judgeCpus(availableParallelism(), await cpuLimit()),
  memory: async () => judgeMemory(totalmem(), await memoryLimit()),
  typescript: checkTypescript,
  compiler: checkCompiler,
  processes: checkProcesses,
  'shared mem': checkSharedMemory,
  folder: () => checkFolder(process.cwd()),
  disk: async () => judgeDisk(await freeBytes(process.cwd())),
  'open files': async () => judgeFiles(await readFile('/proc/self/limits', 'utf8')),
}

export function judgeNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return { state: 'ok', found: `Node ${version}` }
  return { state: 'fail', found: `Node ${version} is too old`, todo: 'Install Node 20.19 or newer.' }
}

export function judgeCpus(available: number, limit: number | null): Finding {
  if (limit === null || limit >= available) return { state: 'ok', found: plural(available, 'CPU') }
  const fit = Math.max(1, Math.floor(limit))
  return {
    state: 'warn',
    found: `${plural(available, 'CPU')}, but this container may use ${Number(limit.toFixed(2))} of them`,
    todo: `Run with --cpus ${fit}, or set MILLRACE_CPUS=${fit}.`,
  }
}

export function judgeMemory(total: number, limit: number | null): Finding {
  if (limit === null || limit >= total) return { state: 'ok', found: formatBytes(total) }
  const fit = `${Math.max(1, Math.floor(limit / 1e6))}MB`
  return {
    state: 'warn',
    found: `${formatBytes(total)}, but this container may use ${formatBytes(limit)}`,
    todo: `Run with --memory ${fit}, or set MILLRACE_MEMORY=${fit}.`,
  }
}

async function checkCompiler(): Promise<Finding> {
  for (const name of ['cc', 'gcc', 'clang']) {
    try {
      const { stdout } = await promisify(execFile)(name, ['--version'])
      return { state: 'ok', found: stdout.split('\n')[0] ?? name }
    } catch {
      // The next one, then.
    }
  }
  return {
    state: 'warn',
    found: 'there is no C compiler',
    todo: 'Tasks run without. Building from source needs one: apt install gcc.',
  }
}

/** Commands are started by a small process in C, which is built when it is first needed. */
async function checkProcesses(): Promise<Finding> {
  try {
    await spawnTool()
    return { state: 'ok', found: 'millrace-spawn starts programs and tells what they use' }
  } catch (error) {
    const reason = (error instanceof Error ? error.message : String(error)).split('\n')[0]
    return {
      state: 'warn',
      found: `Node starts programs, which is slower and cannot tell what they use: ${reason}`,
      todo:
        error instanceof BuildFailure && error.reason === 'cache'
          ? 'Set XDG_CACHE_HOME to a folder that can be written.'
          : 'Install a C compiler: apt install gcc libc6-dev.',
    }
  }
}

/** Compute threads load TypeScript by themselves; this does what they do. */
async function checkTypescript(): Promise<Finding> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-doctor-'))
  try {
    const file = join(folder, 'probe.mts')
    await writeFile(file, 'export const answer: number = 42\n')
    const started = performance.now()
    const answer = await askThread(file)
    if (answer !== 42) throw new Error(`the thread answered ${String(answer)}`)
    return {
      state: 'ok',
      found: `threads load TypeScript (in ${Math.round(performance.now() - started)} ms)`,
    }
  } catch (error) {
    return {
      state: 'fail',
      found: `threads cannot load TypeScript: ${error instanceof Error ? error.message : String(error)}`,
      todo: 'Install the package again: npm install millrace. Programs in JavaScript work without it.',
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function askThread(file: string): Promise<unknown> {
  const worker = new Worker(new URL('./doctor-thread.js', import.meta.url), { workerData: file })
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      worker.once('exit', code => reject(new Error(`the thread ended with ${code}`)))
    })
  } finally {
    await worker.terminate()
  }
}

async function checkSharedMemory(): Promise<Finding> {
  if (!existsSync('/dev/shm')) {
    return { state: 'warn', found: 'there is no /dev/shm', todo: 'Mount a tmpfs there for fast files.' }
  }
  return judgeSharedMemory(await freeBytes('/dev/shm'))
}

export function judgeSharedMemory(free: number): Finding {
  if (free >= GIB) return { state: 'ok', found: `${formatBytes(free)} free in /dev/shm` }
  return {
    state: 'warn',
    found: `only ${formatBytes(free)} free in /dev/shm`,
    todo: 'Make it larger for big files in memory; with Docker: --shm-size=4g.',
  }
}

/** Leaves nothing behind: the probe is a file beside .millrace when that is not there yet. */
export async function checkFolder(base: string): Promise<Finding> {
  const folder = existsSync(runsFolder(base)) ? runsFolder(base) : base
  try {
    const probe = await mkdtemp(join(folder, '.millrace-doctor-'))
    await rm(probe, { recursive: true })
    return { state: 'ok', found: `${folder} can be written` }
  } catch (error) {
    return {
      state: 'warn',
      found: `${folder} cannot be written (${(error as NodeJS.ErrnoException).code})`,
      todo: 'Runs work, but leave no journal and no logs. Start them where you may write.',
    }
  }
}

export function judgeDisk(free: number): Finding {
  const found = `${formatBytes(free)} free here`
  if (free >= GIB) return { state: 'ok', found }
  const todo = 'Make room: journals and outputs are written here.'
  return { state: free < 10 * MIB ? 'fail' : 'warn', found: `only ${found}`, todo }
}

export function judgeFiles(limits: string): Finding {
  const text = /^Max open files\s+(\S+)/m.exec(limits)?.[1] ?? '?'
  const count = text === 'unlimited' ? Infinity : Number(text)
  if (!(count < FEW_FILES)) return { state: 'ok', found: `${text} files may be open at once` }
  return {
    state: 'warn',
    found: `only ${text} files may be open at once`,
    todo: `Raise it before a run with many commands: ulimit -n ${FEW_FILES}`,
  }
}

async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
