import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { pathToFileURL } from 'node:url'
export { isAlive } from '../processes.ts'

/** A program with tasks of all kinds, and how to run it on several nodes. */
const root = join(import.meta.dirname, '..', '..')
const bin = join(root, 'bin', 'millrace.js')
export const folder = mkdtempSync(join(tmpdir(), 'millrace-nodes-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const program = join(folder, 'app.mjs')
writeFileSync(
  program,
  `
import { existsSync, writeFileSync, appendFileSync, readFileSync } from 'node:fs'
import { task, command, main, waitOn, barrier, IN, INOUT, FILE_IN, FILE_OUT, shared, stream, CONCURRENT } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const [mode = 'all', folder = '.'] = process.argv.slice(2)
const spin = ms => { const end = performance.now() + ms; while (performance.now() < end); }
export const who = task({ name: 'who' }, ms => { spin(ms); return process.pid })
export const large = task({ name: 'large' }, n => new Float64Array(n).fill(1.5))
export const sum = task({ name: 'sum', params: [IN] }, a => a.reduce((x, y) => x + y, 0))
export const bump = task({ name: 'bump', params: [INOUT] }, a => { for (let i = 0; i < a.length; i++) a[i]++ })
export const count = task({ name: 'count', params: [CONCURRENT] }, a => { Atomics.add(a, 0, 1) })
export const outer = task({ name: 'outer' }, async n => { const all = []; for (let i = 0; i < n; i++) all.push(inner(i)); let s = 0; for (const one of all) s += await one; return s })
export const word = task({ name: 'word' }, () => process.env.MILLRACE_TEST_WORD ?? null)
export const inner = task({ name: 'inner' }, i => i)
export const values = task({ name: 'values' }, function* (n) { for (let i = 0; i < n; i++) yield i })
export const write = task({ name: 'write', params: [IN, FILE_OUT] }, (text, path) => { writeFileSync(path, text) })
export const join2 = command({ name: 'join2', params: [FILE_IN, FILE_IN, FILE_OUT], stdout: 2 }, (a, b) => ['cat', a, b])
export const grow = command({ name: 'grow', params: [IN, FILE_OUT] }, (n, out) => ['sh', '-c', 'seq 1 $0 > "$1"; sleep 0.1', String(n), out])
export const last = command({ name: 'last', params: [FILE_IN, FILE_OUT], stdout: 1 }, path => ['tail', '-n', '1', path])
export const slow = task({ name: 'slow' }, (i, log) => { appendFileSync(log, process.pid + '\\n'); spin(40); return i })
export const shell = command({ name: 'shell', params: [IN, FILE_OUT], stdout: 1 }, i => ['sh', '-c', 'sleep 0.05; echo ' + i])
export const bad = task({ name: 'bad' }, log => { appendFileSync(log, process.pid + '\\n'); process.kill(process.pid, 'SIGKILL'); spin(10000) })
main(async () => {
  if (mode === 'all') {
    const pids = new Set(await waitOn(Array.from({ length: 12 }, () => who(30))))
    const array = large(300_000)
    const sums = await waitOn([sum(array), sum(array), sum(array)])
    const memory = shared(Int32Array, 8); bump(memory); bump(memory); await waitOn(memory)
    const own = new Float64Array(20_000); bump(own); bump(own); bump(own); await waitOn(own)
    const team = shared(Int32Array, 1); for (let i = 0; i < 30; i++) count(team); await waitOn(team)
    let streamed = 0; for await (const value of values(500)) streamed += await value
    write('a', folder + '/a'); write('b', folder + '/b'); join2(folder + '/a', folder + '/b', folder + '/ab')
    grow(20_000, stream(folder + '/grown', { commit: 'on_close', fire: 'no_update' })); last(folder + '/grown', folder + '/last')
    const nested = await outer(10)
    const said = await word()
    await barrier()
    console.log(JSON.stringify({ word: said, pids: pids.size, self: pids.has(process.pid), sums, memory: [...memory], own: own[19_999], team: team[0], streamed, nested, last: readFileSync(folder + '/last', 'utf8') }))
  } else if (mode === 'kill') {
    for (let i = 0; i < 20; i++) shell(i, folder + '/s' + i)
    let all
    // Nodes come when they come: there is work until the test has ended what it ends.
    do all = await waitOn(Array.from({ length: 60 }, (_, i) => slow(i, folder + '/log'))); while (!existsSync(folder + '/killed'))
    await barrier()
    console.log(JSON.stringify(all))
  } else await bad(folder + '/bad')
})
`,
)

export const arguments_ = (nodes: string, mode: string): string[] => [
  bin,
  'run',
  program,
  '--nodes',
  nodes,
  '--no-journal',
  '--progress',
  mode === 'bad' ? 'plain' : 'none',
  '--',
  mode,
  folder,
]

/** Processes of agents whose standard input came from this run. */
export const agentsOf = (parent: number): number[] => {
  const list = execFileSync('ps', ['-eo', 'pid,ppid,args'], { encoding: 'utf8' })
  const lines = list.split('\n').map(line => line.trim().split(/\s+/))
  return lines.flatMap(([pid, ppid, ...words]) =>
    Number(ppid) === parent && words.at(-1) === 'agent' ? [Number(pid)] : [],
  )
}

/** Where the coordinators of these runs have their sockets. */
export const sockets = join(folder, 'tmp')
mkdirSync(sockets)

/** Sockets that ssh has made for agents; other runs on this machine may have some, too, for as long as they start. */
export const sshSockets = (): string[] =>
  readdirSync('/tmp').filter(name => /^millrace-[a-z0-9]{10,}-[0-9]+$/.test(name))

/** What the program prints in the mode `all`, beside the processes in which its tasks ran. */
export const EXPECTED = {
  word: 'wind',
  sums: [450_000, 450_000, 450_000],
  memory: Array.from({ length: 8 }, () => 2),
  own: 3,
  team: 30,
  streamed: (500 * 499) / 2,
  nested: 45,
  last: '20000\n',
}

export interface Running {
  readonly pid: number
  /** The exit status, and what was said to standard output and to standard error. */
  readonly ended: Promise<{ code: number | null; text: string; said: string }>
}

export function start(words: readonly string[], environment: NodeJS.ProcessEnv = {}, cwd?: string): Running {
  const env = { ...process.env, TMPDIR: sockets, MILLRACE_TEST_WORD: 'wind', ...environment }
  const [program = '', ...rest] = words
  const run = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd })
  let text = ''
  let said = ''
  run.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  run.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = new Promise<{ code: number | null; text: string; said: string }>(resolve =>
    run.on('close', code => resolve({ code, text, said })),
  )
  return { pid: run.pid ?? 0, ended }
}

/** Resolves when it is so; fails when that can no longer be, because the run has ended. The limit is a watchdog. */
export async function until(isTrue: () => boolean, run?: Running): Promise<void> {
  let ended: string | null = null
  void run?.ended.then(({ code, said }) => (ended = `the run has ended with exit code ${code}: ${said}`))
  const end = Date.now() + 100_000
  while (!isTrue()) {
    if (ended !== null) throw new Error(ended)
    if (Date.now() > end) throw new Error(`has not happened: ${isTrue.toString()}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** Before a run of the mode `kill`. */
export function forget(): void {
  for (const name of ['log', 'killed']) rmSync(join(folder, name), { force: true })
}

/** All that is to be killed has been: a run of the mode `kill` may end. */
export function allKilled(): void {
  writeFileSync(join(folder, 'killed'), '')
}

/** The processes in which tasks of the mode `kill` have run so far, in the order of their first tasks. */
export function workers(): number[] {
  const log = join(folder, 'log')
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []
  return [...new Set(lines.filter(Boolean).map(Number))]
}
