import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { runProgram } from './run-program.ts'

const OURS = 'millrace, 2 agents'
const HERE = 'millrace, one machine'

const on = (system: string, what: string, nodes: string, count: number): Arm => ({
  system,
  run: async () => (await runProgram('cluster.mjs', [what, nodes, count]))['value'] as number,
})

/** Nodes of one CPU that tasks choose by name. */
function onNodes(system: string, what: string, count: number): Arm {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'nodes.yaml')
  const nodes = Array.from({ length: count }, (_, i) => `  - { name: n${i + 1}, cpus: 1, tags: [n${i + 1}] }`)
  writeFileSync(file, `nodes:\n${nodes.join('\n')}\n`)
  return on(system, what, file, 1)
}

/** Milliseconds for 64 bytes to another socket of this machine and back. */
async function roundTrip(): Promise<number> {
  const server = createServer(socket => socket.setNoDelay(true).pipe(socket)).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true)
  await new Promise(resolve => socket.once('connect', resolve))
  const start = performance.now()
  for (let i = 0; i < 2000; i++) {
    const answer = new Promise(resolve => socket.once('data', resolve))
    socket.write(Buffer.alloc(64))
    await answer
  }
  const took = (performance.now() - start) / 2000
  socket.destroy()
  server.close()
  return took
}

const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
async function idle(): Promise<number> {
  const found = await runProgram('idle-agents.ts', [1000, 10], { execArgv: ['--import', tsx] })
  if (found['alive'] !== 1000) throw new Error(`${String(found['alive'])} of 1,000 agents are alive`)
  return found['value'] as number
}

/** Peers come from PyPI. Where one is not installed its row says so; how they did on one machine is in docs/benchmarks.md. */
const peer = (system: string, module: string): Arm => {
  const isThere = spawnSync('python3', ['-c', `import ${module}`]).status === 0
  const missing = isThere
    ? 'no program for it is written yet'
    : `the Python module ${module} is not installed`
  return { system, missing, run: () => Promise.reject(new Error(missing)) }
}
const PEERS = [peer('Dask', 'distributed'), peer('Ray', 'ray'), peer('Parsl', 'parsl')]

const cases: Case[] = [
  {
    name: 'flat',
    unit: 'tasks/s',
    better: 'higher',
    take: 'best',
    rounds: 3,
    about: 'Empty function tasks on two agents of one CPU each.',
    arms: [on(OURS, 'flat', 'local:2x1', 100_000), on(HERE, 'flat', 'here', 100_000), ...PEERS],
    goals: [{ of: OURS, upFrom: 100_000, unit: 'tasks/s' }],
  },
  {
    name: 'chain',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'Each task waits for the one before; milliseconds per task, beside a round trip over TCP.',
    arms: [
      on(OURS, 'chain', 'local:2x1', 3000),
      on(HERE, 'chain', 'here', 3000),
      { system: 'TCP round trip', run: roundTrip },
      ...PEERS,
    ],
    goals: [{ of: OURS, against: 'TCP round trip', atMost: 3, orTie: true }],
  },
  {
    name: 'true',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'Milliseconds per /bin/true.',
    arms: [on(OURS, 'true', 'local:2x1', 2000), on(HERE, 'true', 'here', 2000)],
    goals: [{ of: OURS, against: HERE, atMost: 1.2, orTie: true }],
  },
  {
    name: 'large',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about:
      'A task reads 100 MB that another made, which go to the coordinator and stay where they were made.',
    arms: [on(OURS, 'large', 'local:2x1', 1), on(HERE, 'large', 'here', 1), ...PEERS],
  },
  {
    name: 'other',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about:
      'A task reads 100 MB that lie on another node; beside 100 MB over one plain socket of this machine.',
    arms: [
      onNodes(OURS, 'other', 2),
      { system: 'one socket', run: async () => (await runProgram('socket.mjs', []))['value'] as number },
      ...PEERS,
    ],
    goals: [{ of: OURS, against: 'one socket', atMost: 1.25, orTie: true }],
  },
  {
    name: 'spread',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'Three tasks on three nodes read 100 MB that lie on a fourth; beside one such task.',
    arms: [onNodes('millrace, 4 agents', 'spread', 4), onNodes('millrace, one reader', 'other', 2)],
  },
  {
    name: 'start',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'From the start of the process to the first result.',
    arms: [on(OURS, 'start', 'local:2', 1), on(HERE, 'start', 'here', 1)],
    goals: [{ of: OURS, below: 500, unit: 'ms' }],
  },
  {
    name: 'kill',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 2,
    about:
      '200 tasks of 50 ms on two agents of one CPU, of which one is killed after 0.1 s; beside one agent alone.',
    arms: [
      on(OURS, 'kill', 'local:2x1', 200),
      on('millrace, 1 agent, no kill', 'kill', 'local:1x1', 200),
      ...PEERS,
    ],
    goals: [{ of: OURS, against: 'millrace, 1 agent, no kill', atMost: 1.1 }],
  },
  {
    name: 'idle',
    unit: '%',
    better: 'lower',
    take: 'best',
    rounds: 1,
    about:
      'Share of a CPU that 1,000 agents with nothing to do take of the coordinator: connections and leases, over TLS.',
    arms: [{ system: 'millrace, 1,000 agents', run: idle }],
    goals: [{ of: 'millrace, 1,000 agents', below: 10, unit: '%' }],
  },
]

await bench('cluster', cases)
