/**
 * The library and the board tool are C and are built on the machine where they run, at first use: an npm
 * package with an install script is refused in many places, and a shipped binary fits one libc only.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { StreamError } from './stream-error.ts'

export interface Tools {
  /** Path of `millrace-board`. */
  board: string
  /** Path of `libmillrace.so`. */
  library: string
}

/** Built files are one folder below the package, sources two. */
const SOURCES =
  ['../preload/', '../../preload/']
    .map(path => fileURLToPath(new URL(path, import.meta.url)))
    .find(existsSync) ?? ''

const pending = new Map<string, Promise<Tools>>()

/** The tools of these sources, built if they are not. `say` hears when a build takes place. */
export async function streamTools(say: (text: string) => void = () => {}, sources = SOURCES): Promise<Tools> {
  if (process.platform !== 'linux') {
    throw new StreamError(
      'MR_STREAM_PLATFORM',
      `streaming works on Linux only, not on ${process.platform}`,
      'run the steps on Linux',
    )
  }
  const known = pending.get(sources)
  if (known !== undefined) return known
  const made = findOrBuild(sources, say)
  pending.set(sources, made)
  made.catch(() => pending.delete(sources))
  return made
}

async function findOrBuild(sources: string, say: (text: string) => void): Promise<Tools> {
  const names = await readdir(sources).catch(() => [])
  const used = names.filter(name => /\.(c|h|S|sh|map)$/.test(name)).sort()
  if (!used.includes('build.sh')) {
    throw new StreamError(
      'MR_STREAM_BUILD',
      `the sources of the library are not in ${sources}`,
      'install millrace again',
    )
  }
  const hash = createHash('sha256').update(`${process.arch} ${process.env['CC'] ?? 'cc'}`)
  for (const name of used) hash.update(`\0${name}\0`).update(await readFile(join(sources, name)))
  const folder = join(cacheFolder(), `stream-${hash.digest('hex').slice(0, 16)}`)
  const tools = { board: join(folder, 'millrace-board'), library: join(folder, 'libmillrace.so') }
  if (existsSync(tools.board) && existsSync(tools.library)) {
    await utimes(folder, new Date(), new Date()).catch(() => {}) // In use: see removeUnused.
    return tools
  }
  say(`building the streaming library in ${folder} …\n`)
  await build(sources, folder)
  if (!existsSync(tools.board) || !existsSync(tools.library)) {
    throw new StreamError(
      'MR_STREAM_BUILD',
      `${sources}build.sh ended well but made nothing`,
      'please report this',
    )
  }
  return tools
}

/** One process builds, the others wait for it: many steps may be started at once on a fresh machine. */
async function build(sources: string, folder: string): Promise<void> {
  await mkdir(cacheFolder(), { recursive: true })
  const lock = `${folder}.lock`
  while (!(await takeLock(lock))) {
    await sleep(100)
    if (existsSync(folder)) return
  }
  const fresh = await mkdtemp(`${folder}.`)
  try {
    if (existsSync(folder)) return
    await runBuild(sources, fresh)
    await rename(fresh, folder)
    await removeUnused()
  } finally {
    await rm(fresh, { recursive: true, force: true })
    await rm(lock, { force: true })
  }
}

const UNUSED_MS = 14 * 86_400_000

/** Builds of other versions that nobody has used for two weeks, and what killed builds left. */
export async function removeUnused(now = Date.now()): Promise<void> {
  for (const name of await readdir(cacheFolder()).catch(() => [])) {
    if (!/^stream-[0-9a-f]{16}(\.|$)/.test(name)) continue
    const path = join(cacheFolder(), name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }))
    if (now - mtimeMs > UNUSED_MS) await rm(path, { recursive: true, force: true }).catch(() => {})
  }
}

async function takeLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }))
    // Left by a build that was killed: no build takes minutes.
    if (Date.now() - mtimeMs > 180_000) await rm(lock, { force: true })
    return false
  }
}

function runBuild(sources: string, folder: string): Promise<void> {
  const compiler = process.env['CC'] ?? 'cc'
  return new Promise((resolve, reject) => {
    execFile('sh', [join(sources, 'build.sh'), folder], { maxBuffer: 1 << 24 }, (error, _stdout, stderr) => {
      if (error === null) return resolve()
      const missing = new RegExp(`${compiler.replace(/\W/g, '\\$&')}.*not found`).test(stderr)
      const lines = stderr.trim().split('\n').slice(-8).join('\n  ')
      reject(
        missing
          ? new StreamError(
              'MR_STREAM_BUILD',
              `there is no C compiler ('${compiler}') to build the streaming library with`,
              'install one (Debian: apt install gcc libc6-dev) or set CC; nothing else of Millrace needs it',
            )
          : new StreamError(
              'MR_STREAM_BUILD',
              `the streaming library could not be built:\n  ${lines}`,
              'see the messages of the compiler above',
            ),
      )
    })
  })
}

/** `$XDG_CACHE_HOME/millrace` or `~/.cache/millrace`. */
export function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.cache'), 'millrace')
}
