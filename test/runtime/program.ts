import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from './embedded.ts'

/** Programs as people write them, each in a folder of its own and run as a process of its own. */

const root = fileURLToPath(new URL('../..', import.meta.url))
const tsx = join(root, 'node_modules', 'tsx', 'dist', 'cli.mjs')

export interface Ended {
  code: number | null
  signal: string | null
  out: string
  err: string
}

export class Program {
  readonly folder: string
  readonly #temporary: string
  #child: ChildProcess | null = null
  #ended: Promise<Ended> = Promise.resolve({ code: null, signal: null, out: '', err: '' })
  readonly #sharedMemory = list('/dev/shm')

  /** `files` are the sources by name; `type` is that of their package. */
  constructor(files: Readonly<Record<string, string>>, type: 'module' | 'commonjs' = 'module') {
    this.folder = mkdtempSync(join(tmpdir(), 'millrace-program-'))
    this.#temporary = mkdtempSync(join(tmpdir(), 'millrace-temporary-'))
    mkdirSync(join(this.folder, 'node_modules'))
    symlinkSync(root, join(this.folder, 'node_modules', 'millrace'))
    writeFileSync(join(this.folder, 'package.json'), JSON.stringify({ type }))
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(this.path(name)), { recursive: true })
      writeFileSync(this.path(name), text)
    }
  }

  /** Another process in the same folder. */
  sibling(): Program {
    return Object.assign(new Program({}), { folder: this.folder })
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  read(name: string): string {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : ''
  }

  /** With `uid`, as another user, to whom the folder for temporary files then belongs. */
  start(
    name: string,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
    uid?: number,
  ): void {
    if (uid !== undefined) chownSync(this.#temporary, uid, uid)
    const words = name.endsWith('.ts') ? [tsx, name] : [name]
    const child = spawn(process.execPath, [...words, ...args], {
      cwd: this.folder,
      env: { ...clean(process.env), TMPDIR: this.#temporary, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid, gid: uid }),
    })
    this.#child = child
    let out = ''
    let err = ''
    child.stdout.on('data', (text: Buffer) => (out += String(text)))
    child.stderr.on('data', (text: Buffer) => (err += String(text)))
    this.#ended = new Promise(resolve => {
      child.once('close', (code, signal) => resolve({ code, signal, out, err }))
    })
  }

  /** The coordinator itself: tsx runs the program in a child of its own. */
  get coordinator(): number {
    const own = this.#child?.pid ?? 0
    try {
      const [child] = readFileSync(`/proc/${own}/task/${own}/children`, 'utf8').trim().split(' ')
      const line = child ? readFileSync(`/proc/${child}/cmdline`, 'utf8') : ''
      return line.includes('tsx') ? Number(child) : own
    } catch {
      return own
    }
  }

  async end(limit = 60_000): Promise<Ended> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        this.#child?.kill('SIGKILL')
        reject(new Error(`the program has not ended after ${limit} ms`))
      }, limit)
    })
    try {
      return await Promise.race([this.#ended, late])
    } finally {
      clearTimeout(timer)
    }
  }

  async run(
    name: string,
    args: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Ended> {
    this.start(name, args, env)
    return this.end()
  }

  /** Fails when anything of the run is left; then removes the program. */
  async leavesNothing(): Promise<void> {
    await until(() => this.#left().length === 0, `the end of ${this.#left().join(', ')}`, 60_000).catch(
      () => {
        throw new Error(`left behind: ${this.#left().join(', ')}`)
      },
    )
    this.remove()
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
    rmSync(this.#temporary, { recursive: true, force: true })
  }

  #left(): string[] {
    let names: string[]
    try {
      names = readdirSync(this.folder, { recursive: true }) as string[]
    } catch {
      return ['a folder that is being removed']
    }
    const staging = names.filter(
      name => /(^|\/)\.millrace-[^/]*$/.test(name) && !name.startsWith('node_modules'),
    )
    // The cache of tsx is its own affair.
    const temporary = list(this.#temporary).filter(
      name => !name.startsWith('tsx-') && name !== 'node-compile-cache',
    )
    // Tests of streaming, which run beside this one, have theirs there under such names.
    const memory = list('/dev/shm').filter(
      name => !this.#sharedMemory.includes(name) && !/test-|^millrace[.-]/.test(name),
    )
    return [...staging, ...temporary, ...memory, ...this.#processes()]
  }

  /** Processes that work in the program's folder: all of a run do, but for its watchdog. */
  #processes(): string[] {
    return list('/proc').filter(pid => {
      if (!/^\d+$/.test(pid)) return false
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`TMPDIR=${this.#temporary}`) && !isZombie(pid)
        )
      } catch {
        return false
      }
    })
  }
}

const isZombie = (pid: string): boolean => /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

const list = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : [])

function clean(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !/^(NODE_|MILLRACE_|TSX_)/.test(name)) kept[name] = value
  }
  return kept
}
