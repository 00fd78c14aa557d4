// Builds the library and the fixture programs once per content, and runs workflows over boards that are
// always destroyed again. Every process started here has a time limit and is killed by its own pid.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
export { eventually } from '../processes.ts'

const here = dirname(fileURLToPath(import.meta.url))
export const root = join(here, '..', '..')
export const preload = join(root, 'preload')
export const fixtures = join(here, 'fixtures')

const works = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0

export const hasCommand = (name: string): boolean => works('sh', ['-c', `command -v ${name}`])
export const compiler = process.env['CC'] ?? 'cc'

/** Why these tests cannot run here, or false. */
export const skip: string | false =
  process.platform !== 'linux'
    ? 'the library is for Linux'
    : process.arch !== 'x64'
      ? 'the library patches libc on x86-64 only'
      : !works(compiler, ['--version'])
        ? 'there is no C compiler'
        : false

export const contentOf = (folder: string): string =>
  readdirSync(folder)
    .filter(name => /\.(c|h|S|sh)$/.test(name))
    .sort()
    .map(name => `${name}\n${readFileSync(join(folder, name), 'utf8')}`)
    .join('\n')

/** Runs `make` into a folder named after the content, unless it is there already. */
export const once = (name: string, content: string, make: (folder: string) => void): string => {
  const key = createHash('sha256').update(content).update(compiler).digest('hex').slice(0, 16)
  const parent = join(root, '.millrace', 'preload-test')
  const folder = join(parent, `${name}-${key}`)
  if (existsSync(folder)) return folder
  mkdirSync(parent, { recursive: true })
  const making = mkdtempSync(join(parent, 'making-'))
  make(making)
  try {
    renameSync(making, folder)
  } catch {
    rmSync(making, { recursive: true, force: true }) // another test file was faster
  }
  return folder
}

export const compile = (command: string, args: string[]): void => {
  const result = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: 180_000,
    env: { ...process.env, MILLRACE_WERROR: '1' },
  })
  if (result.status !== 0) throw new Error(`${command} ${args.join(' ')}\n${result.stderr}`)
}

const buildDir = (): string =>
  once('lib', contentOf(preload), folder => compile('sh', [join(preload, 'build.sh'), folder]))

const fixtureDir = (): string =>
  once('fixtures', contentOf(fixtures), folder => {
    for (const name of readdirSync(fixtures).filter(
      file => file.endsWith('.c') && !file.startsWith('logic-'),
    ))
      compile(compiler, [
        '-O1',
        '-Wall',
        '-pthread',
        ...(name.startsWith('static-') ? ['-static'] : []),
        '-o',
        join(folder, name.slice(0, -2)),
        join(fixtures, name),
      ])
  })

/** The whole library with checks for undefined behaviour, which end a program with SIGILL. */
export const trapped = (): string =>
  join(
    once('trap', contentOf(preload), folder => compile('sh', [join(preload, 'build.sh'), '--trap', folder])),
    'libmillrace.so',
  )

export const tools = skip
  ? { lib: '', board: '', fixture: (name: string) => name }
  : {
      lib: join(buildDir(), 'libmillrace.so'),
      board: join(buildDir(), 'millrace-board'),
      fixture: (name: string) => join(fixtureDir(), name),
    }

/** Offsets of libc's sites are kept in a folder of ours, so that nothing is left in /dev/shm. */
const cache = mkdtempSync(join(tmpdir(), 'millrace-sites-'))
process.on('exit', () => rmSync(cache, { recursive: true, force: true }))

export type Outcome = { code: number; stdout: string; stderr: string; timedOut: boolean }
export type Running = { pid: number; child: ChildProcess; done: Promise<Outcome> }

export type Started = {
  env?: Record<string, string | undefined>
  cwd?: string
  stdin?: string
  limit?: number
}

export const start = (command: string, args: string[], options: Started = {}): Running => {
  const env: NodeJS.ProcessEnv = { ...process.env, MILLRACE_STREAM_CACHE: cache, ...options.env }
  for (const name of Object.keys(env)) if (env[name] === undefined) delete env[name]
  const child = spawn(command, args, { env, cwd: options.cwd, stdio: ['pipe', 'pipe', 'pipe'] })
  const out: Buffer[] = []
  const err: Buffer[] = []
  let timedOut = false
  child.stdout.on('data', (part: Buffer) => out.push(part))
  child.stderr.on('data', (part: Buffer) => err.push(part))
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.stdin ?? '')
  const timer = setTimeout(() => {
    timedOut = true
    child.kill('SIGKILL')
    child.stdout.destroy() // its orphans may hold the other ends
    child.stderr.destroy()
  }, options.limit ?? 30_000)
  const done = new Promise<Outcome>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      resolve({
        code: code ?? (signal ? 128 : -1),
        stdout: Buffer.concat(out).toString('latin1'),
        stderr: Buffer.concat(err).toString('utf8'),
        timedOut,
      })
    })
  })
  return { pid: child.pid ?? -1, child, done }
}

export type Line = Record<string, unknown> & { type: string }

let boards = 0

/** A board and a managed directory. No wait on it lasts longer than 25 s: no process outlives a test. */
export class Workflow {
  readonly name = `test-${process.pid}-${++boards}`
  readonly dir: string

  constructor(plan: string[], dir = mkdtempSync('/dev/shm/millrace-test-')) {
    this.dir = dir
    const text = [
      'millrace-plan\t1',
      `workflow\t${this.name}`,
      `dir\t${this.dir}`,
      'limit\t25',
      ...plan,
      'end',
      '',
    ].join('\n')
    const made = this.board(['create'], text)
    if (made.status !== 0) throw new Error(made.stderr)
  }

  path(name: string): string {
    return join(this.dir, name)
  }

  board(args: string[], input = ''): { status: number | null; stdout: string; stderr: string } {
    const env = { ...process.env, CAPIO_WORKFLOW_NAME: this.name }
    return spawnSync(tools.board, args, { input, encoding: 'utf8', env, timeout: 60_000 })
  }

  ps(): Line[] {
    const { stdout } = this.board(['ps'])
    return stdout
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as Line)
  }

  file(path: string): Line | undefined {
    return this.ps().find(line => line.type === 'file' && line['path'] === path)
  }

  /** As CAPIO's users do: LD_PRELOAD and the environment, no wrapper. */
  preloaded(app: string | undefined, command: string, args: string[], options: Started = {}): Running {
    return start(command, args, { ...options, env: { ...this.env(app), ...options.env } })
  }

  env(app: string | undefined): Record<string, string | undefined> {
    return {
      LD_PRELOAD: tools.lib,
      CAPIO_DIR: this.dir,
      CAPIO_WORKFLOW_NAME: this.name,
      CAPIO_APP_NAME: app,
    }
  }

  /** One instance of a step under `millrace-board exec`. */
  exec(app: string, command: string, args: string[], options: Started = {}): Running {
    return start(tools.board, ['exec', '-w', this.name, '--app', app, '--', command, ...args], options)
  }

  destroy(): void {
    this.board(['destroy', '--force'])
    rmSync(this.dir, { recursive: true, force: true })
  }
}

export const withWorkflow = async (
  plan: string[],
  body: (workflow: Workflow) => Promise<void>,
  dir?: string,
): Promise<void> => {
  const workflow = new Workflow(plan, dir)
  try {
    await body(workflow)
  } finally {
    workflow.destroy()
  }
}

export const step = (id: number, name: string, instances = '-'): string =>
  `step\t${id}\t${name}\t${instances}`
export const rule = (
  kind: 'file' | 'dir',
  pattern: string,
  producers: string,
  commit: string,
  mode: 'update' | 'no_update',
  deps?: string,
): string =>
  [
    'rule',
    kind,
    /[*?[]/.test(pattern) ? 'glob' : 'exact',
    pattern,
    producers,
    commit,
    mode,
    ...(deps ? [deps] : []),
  ].join('\t')

export const pause = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** A repeatable source of randomness. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
