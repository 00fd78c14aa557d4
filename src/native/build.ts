/**
 * The parts in C are built on the machine where they run, at first use: an npm package with an install
 * script is refused in many places, and a shipped binary fits one libc only.
 */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, utimesSync } from 'node:fs'
import { mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir, hostname } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export interface Part {
  /** What begins the name of its folder in the cache. */
  name: string
  /** The folder of its sources, with a `build.sh OUT_DIR`. */
  sources: string
  /** The files that the build makes. */
  makes: readonly string[]
  /** What `build.sh` finds as $CC. @default the compiler of all others */
  compiler?: string
  /** Hears when a build takes place, and where. */
  say?: (folder: string) => void
}

export class BuildFailure extends Error {
  override name = 'BuildFailure'
  readonly reason: 'sources' | 'compiler' | 'build' | 'nothing' | 'cache'

  constructor(reason: BuildFailure['reason'], message: string) {
    super(message)
    this.reason = reason
  }
}

/** The folder of C sources with this name. Built files are one folder below the package, sources two. */
export const sourcesOf = (name: string): string =>
  ['../', '../../']
    .map(up => fileURLToPath(new URL(`${up}${name}/`, import.meta.url)))
    .find(folder => existsSync(join(folder, 'build.sh'))) ?? ''

export const compiler = (): string => process.env['CC'] ?? 'cc'

/** The folder with what the sources make, built if it is not there. */
export async function buildPart(part: Part): Promise<string> {
  const there = builtPart(part)
  if (there !== null) return there
  const { sources, say } = part
  const folder = partFolder(part)
  say?.(folder)
  await build(part, folder)
  if (!isMade(part, folder))
    throw new BuildFailure('nothing', `${join(sources, 'build.sh')} ended well but made nothing`)
  return folder
}

/** The same if it is there already; without waiting, because the first command does. */
export function builtPart(part: Part): string | null {
  const folder = partFolder(part)
  if (!isMade(part, folder)) return null
  try {
    utimesSync(folder, new Date(), new Date()) // In use: see removeUnused.
  } catch {
    // It belongs to another user.
  }
  return folder
}

const isMade = ({ makes }: Part, folder: string): boolean =>
  makes.every(file => existsSync(join(folder, file)))

/** Where it is, or will be when it is built: named after what it is made from. */
export function partFolder({
  name,
  sources,
  compiler: own,
}: Pick<Part, 'name' | 'sources' | 'compiler'>): string {
  const { crc32 } = process.getBuiltinModule('node:zlib')
  const used = filesIn(sources).filter(file => /\.(c|h|S|sh|map)$/.test(file))
  if (!used.includes('build.sh')) throw new BuildFailure('sources', `there are no sources in ${sources}`)
  let sum = crc32(`${process.arch} ${own ?? compiler()}`)
  let size = 0
  for (const file of used.sort()) {
    const text = readFileSync(join(sources, file))
    size += text.length
    sum = crc32(text, crc32(`\0${file}\0`, sum))
  }
  return join(cacheFolder(), `${name}-${hexadecimal(sum)}${hexadecimal(size)}`)
}

const hexadecimal = (number: number): string => number.toString(16).padStart(8, '0')

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** One process builds, the others wait for it: many may be started at once on a fresh machine. */
async function build({ sources, compiler: own }: Part, folder: string): Promise<void> {
  const lock = `${folder}.lock`
  const fresh = `${folder}.${process.pid}-${builds++}`
  try {
    await mkdir(cacheFolder(), { recursive: true })
    await removeKilled()
    while (!(await takeLock(lock, fresh))) {
      await sleep(100)
      if (existsSync(folder)) return
    }
    await mkdir(fresh, { recursive: true })
  } catch (error) {
    throw new BuildFailure('cache', `${cacheFolder()} cannot be written: ${(error as Error).message}`)
  }
  try {
    if (existsSync(folder)) return
    await runBuild(sources, fresh, own ?? compiler())
    await rename(fresh, folder).catch(error => {
      if (!existsSync(folder)) throw error // Else another was faster: its lock was taken for that of a killed build.
    })
    await removeUnused()
  } finally {
    await rm(fresh, { recursive: true, force: true })
    await rm(lock, { force: true })
  }
}

let builds = 0

/** What killed builds on this machine left: their locks say who they were and where they built. */
export async function removeKilled(): Promise<void> {
  for (const name of await readdir(cacheFolder()).catch(() => [])) {
    if (!/^[a-z]+-[0-9a-f]{16}\.lock$/.test(name)) continue
    const lock = join(cacheFolder(), name)
    const [host, pid, fresh] = (await readFile(lock, 'utf8').catch(() => '')).split(' ')
    if (host !== hostname() || fresh === undefined || lives(Number(pid))) continue
    if (fresh.startsWith(`${name.slice(0, -5)}.`))
      await rm(join(cacheFolder(), fresh), { recursive: true, force: true })
    await rm(lock, { force: true })
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const UNUSED_MS = 14 * 86_400_000

/** Builds of other versions that were not used for two weeks, and what killed builds left. */
export async function removeUnused(now = Date.now()): Promise<void> {
  for (const name of await readdir(cacheFolder()).catch(() => [])) {
    if (!/^[a-z]+-[0-9a-f]{16}(\.|$)/.test(name)) continue
    const path = join(cacheFolder(), name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: now }))
    if (now - mtimeMs > UNUSED_MS) await rm(path, { recursive: true, force: true }).catch(() => {})
  }
}

async function takeLock(lock: string, fresh: string): Promise<boolean> {
  try {
    await writeFile(lock, `${hostname()} ${process.pid} ${basename(fresh)}`, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }))
    // Left by a build that was killed on another machine: no build takes minutes.
    if (Date.now() - mtimeMs > 180_000) await rm(lock, { force: true })
    else await removeKilled()
    return false
  }
}

function runBuild(sources: string, folder: string, cc: string): Promise<void> {
  const options = { maxBuffer: 1 << 24, env: { ...process.env, CC: cc } }
  return new Promise((resolve, reject) => {
    execFile('sh', [join(sources, 'build.sh'), folder], options, (error, _stdout, stderr) => {
      if (error === null) return resolve()
      const missing = new RegExp(`${cc.replace(/\W/g, '\\$&')}.*not found`).test(stderr)
      const lines = stderr.trim().split('\n').slice(-8).join('\n  ')
      reject(
        missing
          ? new BuildFailure('compiler', `there is no C compiler ('${cc}')`)
          : new BuildFailure('build', lines),
      )
    })
  })
}

/** `$XDG_CACHE_HOME/millrace` or `~/.cache/millrace`. */
export function cacheFolder(): string {
  const base = process.env['XDG_CACHE_HOME']
  return join(base !== undefined && base.startsWith('/') ? base : join(homedir(), '.cache'), 'millrace')
}
