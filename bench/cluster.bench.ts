import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sshMissing, withSsh } from './cluster/own-ssh.ts'
import { slurmMissing, withSlurm } from './cluster/own-slurm.ts'
import { bench } from './harness.ts'
import type { Arm, Case } from './harness.ts'
import { lastLine, programPath, runProgram } from './run-program.ts'
import { Namespaces } from './stream/namespaces.ts'

const OURS = 'millrace, 2 agents'
const HERE = 'millrace, one machine'
const TWO_TRIPS = 'two TCP round trips + 0.1 ms'

const on = (system: string, what: string, nodes: string, count: number): Arm => ({
  system,
  run: async () => (await runProgram('cluster.mjs', [what, nodes, count]))['value'] as number,
})

/** Nodes of one CPU that tasks choose by name. */
function onNodes(system: string, what: string, nodeCount: number, count = 1): Arm {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'nodes.yaml')
  const nodes = Array.from(
    { length: nodeCount },
    (_, i) => `  - { name: n${i + 1}, cpus: 1, tags: [n${i + 1}] }`,
  )
  writeFileSync(file, `nodes:\n${nodes.join('\n')}\n`)
  return on(system, what, file, count)
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

/** Peers come from PyPI. MILLRACE_BENCH_PYTHON names a Python that has them; where one is not installed its row says so. */
const python = process.env['MILLRACE_BENCH_PYTHON'] ?? 'python3'
const PEERS = [
  { system: 'Dask', module: 'distributed', name: 'dask' },
  { system: 'Ray', module: 'ray', name: 'ray' },
  { system: 'Parsl', module: 'parsl', name: 'parsl' },
  { system: 'HyperQueue, programs', module: 'hyperqueue', name: 'hyperqueue' },
]
const isThere = new Map<string, boolean>()

function peers(what: 'flat' | 'chain' | 'other', count: number, names: readonly string[]): Arm[] {
  return PEERS.filter(({ name }) => names.includes(name)).map(({ system, module, name }) => {
    const has = isThere.get(name) ?? spawnSync(python, ['-c', `import ${module}`]).status === 0
    isThere.set(name, has)
    return {
      system,
      missing: has ? undefined : `the Python module ${module} is not installed`,
      rounds: 1,
      run: async () => {
        const printed = await lastLine(python, [programPath('cluster_peers.py'), name, what, String(count)], {
          // Parsl starts programs that are beside its Python.
          PATH: `${dirname(python)}:${process.env['PATH'] ?? ''}`,
        })
        return (JSON.parse(printed) as { value: number }).value
      },
    }
  })
}
const ALL = ['dask', 'ray', 'parsl', 'hyperqueue']

/** Milliseconds for readers on nodes that have a network of their own, with a rate. */
function overNetwork(
  system: string,
  what: 'single' | 'wide',
  nodes: number,
  rate: string,
  mebibytes: number,
): Arm {
  return {
    system,
    missing: Namespaces.missing,
    run: async () => {
      const spaces = Namespaces.make(nodes, rate)
      const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
      try {
        const file = join(folder, 'nodes.yaml')
        const lines = spaces.specs.map(
          ({ name }, i) => `  - { name: ${name}, cpus: 1, tags: [n${i + 1}], launch: ssh }`,
        )
        writeFileSync(file, `nodes:\n${lines.join('\n')}\n`)
        return (await runProgram('cluster.mjs', [what, file, mebibytes]))['value'] as number
      } finally {
        spaces.end()
        rmSync(folder, { recursive: true, force: true })
      }
    },
  }
}

const bySsh: Arm = {
  system: 'millrace, 2 hosts by ssh',
  missing: sshMissing,
  run: () =>
    withSsh(async env => {
      const found = await runProgram('cluster.mjs', ['start', 'ssh:127.0.0.1:1,localhost:1', 1], { env })
      return found['value'] as number
    }),
}

/** The process starts when the nodes are granted. */
const bySlurm: Arm = {
  system: 'millrace, 2 nodes of Slurm',
  missing: slurmMissing,
  run: () =>
    withSlurm(async env => {
      const words = ['-Q', '-N', '2', process.execPath, programPath('cluster.mjs'), 'start', 'slurm', '1']
      return (JSON.parse(await lastLine('salloc', words, env)) as { value: number }).value
    }),
}

/** Runs tasks of 5 s on two CPUs, in jobs of 60 s, for this many minutes. Returns the share of their time that was thrown away. */
const MINUTES = Number(process.env['MILLRACE_BENCH_MINUTES'] ?? 4)
const inAllocations: Arm = {
  system: 'millrace, jobs of 60 s',
  missing: slurmMissing,
  rounds: 1,
  run: () =>
    withSlurm(async env => {
      const own = { MILLRACE_SLURM: 'partition=all,time=60s', SLURM_CONF: env['SLURM_CONF'] ?? '' }
      const found = await runProgram('cluster.mjs', ['wasted', '0..2', MINUTES * 24], { env: own })
      return found['value'] as number
    }),
}

/** Eight readers of one value, beside one reader. */
const wide = (name: string, rate: string, mebibytes: number, about: string): Case => ({
  name,
  unit: 'ms',
  better: 'lower',
  take: 'median',
  rounds: 1,
  about,
  arms: [
    overNetwork('millrace, 8 readers', 'wide', 9, rate, mebibytes),
    overNetwork('millrace, one reader', 'single', 2, rate, mebibytes),
  ],
  goals: [{ of: 'millrace, 8 readers', against: 'millrace, one reader', atMost: 3 }],
})

const cases: Case[] = [
  {
    name: 'flat',
    unit: 'tasks/s',
    better: 'higher',
    take: 'best',
    rounds: 3,
    about: 'Empty function tasks on two agents of one CPU each.',
    arms: [
      on(OURS, 'flat', 'local:2x1', 100_000),
      on(HERE, 'flat', 'here', 100_000),
      ...peers('flat', 5000, ALL),
    ],
    goals: [{ of: OURS, upFrom: 100_000, unit: 'tasks/s' }],
  },
  {
    name: 'chain',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'Each task waits for the one before, which is on the other node; milliseconds per task.',
    arms: [
      onNodes(OURS, 'hops', 2, 3000),
      on('millrace, 2 agents, free choice', 'chain', 'local:2x1', 3000),
      on(HERE, 'chain', 'here', 3000),
      { system: TWO_TRIPS, run: async () => 2 * (await roundTrip()) + 0.1 },
      ...peers('chain', 1000, ALL),
    ],
    goals: [{ of: OURS, against: TWO_TRIPS, atMost: 1, orTie: true }],
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
    about: 'A task reads 100 MB that another made, which stay where they were made.',
    arms: [on(OURS, 'large', 'local:2x1', 1), on(HERE, 'large', 'here', 1)],
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
      ...peers('other', 12_500_000, ['dask', 'ray']),
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
  wide('wide', '1gbit', 1024, 'Tasks on eight nodes read 1 GiB that lies on a ninth; links of 1 Gbit/s.'),
  wide(
    'wide-slow',
    '100mbit',
    128,
    'The same with a tenth of the rate and an eighth of the bytes: two CPUs cannot encrypt for eight links of 1 Gbit/s.',
  ),
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
    name: 'start-far',
    unit: 'ms',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about: 'The same by ssh (an sshd of this machine), and in an allocation of Slurm after the grant.',
    arms: [bySsh, bySlurm],
    goals: [
      { of: bySsh.system, below: 2000, unit: 'ms' },
      { of: bySlurm.system, below: 1000, unit: 'ms' },
    ],
  },
  {
    name: 'allocations',
    unit: '%',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about: `Tasks of 5 s for ${MINUTES} minutes on two CPUs in jobs of 60 s: the share of their time that was thrown away. MILLRACE_BENCH_MINUTES sets the minutes.`,
    arms: [inAllocations],
    goals: [{ of: inAllocations.system, upTo: 3, unit: '%' }],
  },
  {
    name: 'kill',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 2,
    about:
      '200 tasks of 50 ms on two agents of one CPU, of which one is killed after 0.1 s; beside one agent alone.',
    arms: [on(OURS, 'kill', 'local:2x1', 200), on('millrace, 1 agent, no kill', 'kill', 'local:1x1', 200)],
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
