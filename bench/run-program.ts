import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const programPath = (name: string): string =>
  fileURLToPath(new URL(`./programs/${name}`, import.meta.url))

export interface ProgramOptions {
  journal?: boolean
  execArgv?: readonly string[]
  env?: Readonly<Record<string, string>>
}

/**
 * Runs a program of bench/programs in a process and a folder of its own, on two CPUs, and gives the object
 * that it prints as JSON on its last line.
 */
export async function runProgram<T = Record<string, number>>(
  name: string,
  args: readonly (string | number)[] = [],
  options: ProgramOptions = {},
): Promise<T> {
  const { journal = false, execArgv = [], env = {} } = options
  const settings = { MILLRACE_JOURNAL: journal ? '1' : '0', ...env }
  const argv = [...execArgv, programPath(name), ...args.map(String)]
  return JSON.parse(await lastLine(process.execPath, argv, settings)) as T
}

/** A program that hangs is reported as failed; it must not stop the benchmark. Milliseconds. */
const LIMIT = 300_000

/** Runs a command in a folder of its own and gives the last line that it prints. */
export async function lastLine(
  program: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  // Programs keep a journal where they are started; it must not pile up between rounds.
  const cwd = await mkdtemp(join(tmpdir(), 'millrace-bench-'))
  try {
    const printed = await collect(program, argv, cwd, env)
    return printed.trimEnd().split('\n').at(-1) ?? ''
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

function collect(
  program: string,
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, argv, {
      cwd,
      env: { ...cleanEnvironment(), MILLRACE_CPUS: '2', MILLRACE_PROGRESS: 'none', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT,
      killSignal: 'SIGKILL',
    })
    const name = basename(argv.find(one => /\.(mjs|ts|py)$/.test(one)) ?? program)
    let printed = ''
    let complaints = ''
    child.stdout.on('data', (text: Buffer) => (printed += String(text)))
    child.stderr.on('data', (text: Buffer) => (complaints += String(text)))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve(printed)
      else if (signal) reject(new Error(`${name} was ended by ${signal}`))
      else reject(new Error(`${name} ended with ${code}: ${reasonIn(complaints)}`))
    })
  })
}

/** The line that says what went wrong, among those that say where. */
function reasonIn(complaints: string): string {
  const lines = complaints.trim().split('\n')
  return lines.find(line => /Error\b/.test(line)) ?? lines.at(-1) ?? ''
}

/** Certificates that are read by every process of Node, for nothing, take longer than the rest of its start. */
const OF_THIS_MACHINE = ['NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS']

/** Settings of the user must not change what is measured. */
export function cleanEnvironment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !name.startsWith('MILLRACE_') && !OF_THIS_MACHINE.includes(name),
  )
  return Object.fromEntries(kept) as Record<string, string>
}
