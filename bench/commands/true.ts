import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Arm, Case } from '../harness.ts'
import { cleanEnvironment, programPath } from '../run-program.ts'

const TASKS = 5000

interface Peer {
  system: string
  program: string
  args: (tasks: number) => string[]
  files?: (tasks: number) => Record<string, string>
  stdin?: (tasks: number) => string
  /** Slow ones do fewer: the time per task is the same. */
  tasks?: number
  /** A program that must answer, when another than the one that is started. */
  needs?: readonly string[]
}

const each = (tasks: number, line: (i: number) => string): string =>
  Array.from({ length: tasks }, (_, i) => line(i)).join('')

const PEERS: Peer[] = [
  {
    system: 'GNU make, no shell',
    program: 'make',
    args: () => ['-s', '-j2'],
    files: tasks => ({
      Makefile: `all: ${each(tasks, i => `t${i} `)}\n${each(tasks, i => `t${i}:\n\t@/bin/true\n`)}`,
    }),
  },
  {
    system: 'ninja',
    program: 'ninja',
    args: () => ['-j2', '--quiet'],
    files: tasks => ({
      'build.ninja': `rule r\n  command = /bin/true\n${each(tasks, i => `build t${i}: r\n`)}`,
    }),
  },
  {
    system: 'GNU parallel',
    program: 'parallel',
    args: () => ['-j2', '/bin/true'],
    stdin: tasks => each(tasks, i => `${i}\n`),
    tasks: 1000,
    needs: ['parallel', '--version'],
  },
  {
    system: 'rake -m',
    program: 'rake',
    args: () => ['-m', '-j2', 'all'],
    files: tasks => ({
      Rakefile: `t = (0...${tasks}).map { |i| "t#{i}" }\nt.each { |n| task(n) { system('/bin/true') } }\ntask all: t\n`,
    }),
    tasks: 1000,
  },
  {
    system: 'Pwrake',
    program: 'pwrake',
    args: () => ['-j2', 'all'],
    files: tasks => ({
      Rakefile: `t = (0...${tasks}).map { |i| "t#{i}" }\nt.each { |n| task(n) { sh '/bin/true' } }\ntask all: t\n`,
    }),
    tasks: 1000,
  },
  {
    system: 'Snakemake',
    program: 'snakemake',
    args: () => ['-j2', '--quiet', 'all', '--nocolor'],
    files: tasks => ({
      Snakefile: `rule all:\n  input: expand("t{i}", i=range(${tasks}))\nrule one:\n  output: touch("t{i}")\n  shell: "/bin/true"\n`,
    }),
    tasks: 200,
  },
]

/** Milliseconds per task of the whole process, from its start to its end. */
function timed(peer: Peer, env: Record<string, string> = {}): () => Promise<number> {
  const { program, args, files, stdin, tasks = TASKS } = peer
  return () => {
    const cwd = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
    for (const [name, text] of Object.entries(files?.(tasks) ?? {})) writeFileSync(join(cwd, name), text)
    return new Promise<number>((resolve, reject) => {
      const start = performance.now()
      const child = spawn(program, args(tasks), {
        cwd,
        env: { ...cleanEnvironment(), ...env },
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      let printed = ''
      let ended: number | null = null
      child.stdout?.on('data', (text: Buffer) => {
        printed += String(text)
        if (printed.includes('"ended":true')) ended ??= performance.now()
      })
      child.stdin?.end(stdin?.(tasks) ?? '')
      child.on('error', reject)
      child.on('close', code => {
        // Making the heap, and giving it back to the system, are not part of starting commands.
        const filling = Number(/"filling":([\d.e-]+)/.exec(printed)?.[1] ?? 0) * 1000
        const took = (ended ?? performance.now()) - start - filling
        if (code === 0) resolve(took / tasks)
        else reject(new Error(`${program} ended with ${code}`))
      })
    }).finally(() => rmSync(cwd, { recursive: true, force: true }))
  }
}

function peerArm(peer: Peer): Arm {
  const [program, ...args] = peer.needs ?? [peer.program, '--version']
  const isThere = spawnSync(program as string, args, { stdio: 'ignore' }).status === 0
  return {
    system: peer.system,
    missing: isThere ? undefined : `${peer.program} is not installed`,
    run: timed(peer),
    ...(peer.tasks ? { rounds: 1 } : {}),
  }
}

const ours = (system: string, megabytes: number, settings: Record<string, string> = {}): Arm => ({
  system,
  run: timed(
    {
      system,
      program: process.execPath,
      args: tasks => [programPath('commands.mjs'), String(tasks), String(megabytes)],
    },
    { MILLRACE_CPUS: '2', MILLRACE_PROGRESS: 'none', ...settings },
  ),
})

export function commands(): Case[] {
  return [
    {
      name: 'true',
      unit: 'ms/task',
      better: 'lower',
      take: 'best',
      rounds: 3,
      about: `${TASKS.toLocaleString('en-US')} times /bin/true, 2 at a time; whole processes, with a journal`,
      arms: [
        ours('millrace', 0),
        ours('millrace, 1 GB of heap', 1000),
        ours('millrace, started by Node', 0, { MILLRACE_SPAWNER: 'off' }),
        ...PEERS.map(peerArm),
      ],
      goals: [
        { of: 'millrace', against: 'GNU make, no shell', atMost: 1 },
        { of: 'millrace, 1 GB of heap', against: 'GNU make, no shell', atMost: 1.05 },
        { of: 'ninja', against: 'millrace', atLeast: 1.8 },
        { of: 'GNU parallel', against: 'millrace', atLeast: 5 },
        { of: 'Pwrake', against: 'millrace', atLeast: 5 },
        { of: 'Snakemake', against: 'millrace', atLeast: 35 },
      ],
    },
  ]
}
