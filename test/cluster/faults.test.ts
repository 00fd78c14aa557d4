import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folder, isAlive, start, until } from './program.ts'

/**
 * Random programs, and a workflow of files, on agents that are killed, stopped and cut off at random times, against a run
 * on one machine. FAULTS says how many seeds, SEED the first: FAULTS=1000 SEED=1 npm test -- cluster/faults
 */
const first = Number(process.env['SEED'] ?? 1)
const seeds = Number(process.env['FAULTS'] ?? 4)
const root = join(import.meta.dirname, '..', '..')
const program = join(import.meta.dirname, 'faults', 'program.mjs')
const proxy = join(import.meta.dirname, 'faults', 'proxy.mjs')
const bin = join(root, 'bin', 'millrace.js')
const node = process.execPath
/** A run without faults takes about two seconds. */
const LIMIT = Number(process.env['LIMIT'] ?? 120_000)

const environment: NodeJS.ProcessEnv = { MILLRACE_INDEX: join(root, 'dist', 'index.js') }

/** Agents through a proxy, as on machines of their own: over TLS, with a lease. */
const machines = join(folder, 'machines.yaml')
writeFileSync(machines, `nodes:\n  - { name: n, count: 4, cpus: 1, launch: '${node} ${proxy} {agent}' }\n`)

const words = (nodes: string, seed: number, at: string, busy = 0): string[] => [
  node,
  bin,
  'run',
  program,
  '--nodes',
  nodes,
  '--no-journal',
  '--progress',
  'none',
  '--',
  String(seed),
  at,
  String(busy),
]

/** Processes of the run: its children, theirs, and so on; with their words. */
function descendants(of: number): { pid: number; words: string }[] {
  const list = execFileSync('ps', ['-eo', 'pid,ppid,args'], { encoding: 'utf8' }).split('\n').slice(1)
  const all = list.flatMap(line => {
    const [, pid, ppid, text = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? []
    return pid === undefined ? [] : [{ pid: Number(pid), ppid: Number(ppid), words: text }]
  })
  const found: typeof all = []
  const look = (parent: number): void => {
    for (const one of all.filter(({ ppid }) => ppid === parent)) {
      found.push(one)
      look(one.pid)
    }
  }
  look(of)
  return found
}

const isAgent = ({ words: text }: { words: string }): boolean =>
  text.includes('millrace.js agent') && !text.includes('proxy.mjs') && !text.startsWith('/bin/sh')
const isProxy = ({ words: text }: { words: string }): boolean =>
  text.includes('proxy.mjs') && !text.startsWith('/bin/sh')

function generator(seed: number): () => number {
  let state = (seed * 40503 + 12345) >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))

/** Faults at random times until the run has ended, or two nodes are left. */
async function trouble(
  run: number,
  folderOfMain: string,
  random: () => number,
  isOver: () => boolean,
): Promise<string[]> {
  const done: string[] = []
  // A node that dies before main begins is an error, and told as one.
  await until(() => isOver() || existsSync(folderOfMain))
  for (let lost = 0; !isOver();) {
    await pause(100 + random() * 700)
    if (isOver()) break
    const all = descendants(run)
    const agents = all.filter(isAgent)
    const proxies = all.filter(isProxy)
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)]
    const tell = (pid: number | undefined, signal: NodeJS.Signals): void => {
      if (pid === undefined || !isAlive(pid)) return
      process.kill(pid, signal)
      done.push(`${signal} ${pid}`)
    }
    const kind = Math.floor(random() * 5)
    const victim = pick(agents)?.pid
    if (kind === 0 && lost < 2) {
      lost++
      tell(victim, 'SIGKILL')
    } else if (kind === 1 && lost < 2 && proxies.length > 0) {
      lost++
      tell(pick(proxies)?.pid, 'SIGUSR2')
    } else if (kind === 2 && proxies.length > 0) {
      // Bytes are held back for longer than a node may be silent, sometimes.
      if (lost < 2) {
        lost++
        tell(pick(proxies)?.pid, 'SIGUSR1')
      }
    } else if (victim !== undefined) {
      const isLong = kind === 3 && lost < 2
      if (isLong) lost++
      tell(victim, 'SIGSTOP')
      await pause(isLong ? 3500 : 50 + random() * 500)
      tell(victim, 'SIGCONT')
    }
  }
  return done
}

/** What runs of Millrace leave on the machine while they run. */
const marked = (mark: string): string[] =>
  readdirSync('/proc').filter(name => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/environ`, 'latin1').includes(mark)
    } catch {
      return false
    }
  })

test(`${seeds} random programs under kills, stops and cuts end as on one machine`, async t => {
  if (process.platform !== 'linux') return t.skip('needs /proc')
  let count = 0
  for (let seed = first; seed < first + seeds; seed++) {
    const at = join(folder, `seed${seed}`)
    const temporary = join(folder, `tmp${seed}`)
    // Of its own: other runs may use the folder of this one.
    const cwd = join(folder, `cwd${seed}`)
    for (const path of [temporary, cwd]) mkdirSync(path)
    // Half of them share no folder with the coordinator.
    const isApart = seed % 4 >= 2
    const apart = join(folder, `nodes${seed}`)
    mkdirSync(apart)
    const mark = `MILLRACE_FAULTS=${process.pid}.${seed}.`
    const expected = await start(words('here', seed, join(at, 'one')), environment).ended
    assert.equal(expected.code, 0, expected.said)
    assert.match(expected.text, / true$/m)
    const own = {
      ...environment,
      TMPDIR: temporary,
      MILLRACE_FAULTS: `${process.pid}.${seed}.`,
      MILLRACE_NODE_SILENCE: '2s',
      MILLRACE_CUT: '3000',
      XDG_CACHE_HOME: join(folder, 'cache'),
      ...(isApart ? { MILLRACE_NODE_FOLDER: apart } : {}),
    }
    const nodes = seed % 2 === 0 ? 'local:4x1' : machines
    const run = start(words(nodes, seed, join(at, 'several')), own, cwd)
    let isOver = false
    const limit = setTimeout(() => {
      for (const { pid } of [{ pid: run.pid }, ...descendants(run.pid)]) process.kill(pid, 'SIGKILL')
    }, LIMIT)
    const faults = trouble(run.pid, join(at, 'several'), generator(seed), () => isOver)
    const { code, text, said } = await run.ended
    isOver = true
    clearTimeout(limit)
    const done = await faults
    // What went on after a stop is no fault of its own.
    count += done.filter(one => !one.startsWith('SIGCONT')).length
    const told = `seed ${seed}, ${nodes}${isApart ? ', apart' : ''}: ${done.join(', ')}\n${said}`
    assert.equal(code, 0, told)
    assert.equal(text, expected.text, told)
    // Nothing is left: no process, no socket, no folder, no staged file.
    await until(() => marked(mark).length === 0)
    assert.deepEqual(readdirSync(temporary), [], told)
    await until(() => readdirSync(apart).length === 0)
    const names = readdirSync(join(at, 'several'))
    assert.deepEqual(
      names,
      names.filter(name => !name.startsWith('.millrace')),
      told,
    )
    const left = existsSync(join(cwd, '.millrace')) ? readdirSync(join(cwd, '.millrace')) : []
    assert.deepEqual(
      left.filter(name => name.startsWith('agents-')),
      [],
      told,
    )
    rmSync(at, { recursive: true, force: true })
  }
  t.diagnostic(`${count} faults`)
})

test('a main that computes for longer than a node may be silent keeps its nodes', async () => {
  const at = join(folder, 'busy')
  const expected = await start(words('here', 1, join(at, 'one')), environment).ended
  const silence = { ...environment, MILLRACE_NODE_SILENCE: '1s' }
  const { code, text, said } = await start(words(machines, 1, join(at, 'several'), 3000), silence).ended
  assert.equal(code, 0, said)
  assert.equal(text, expected.text)
  assert.doesNotMatch(said, /was lost/)
})
