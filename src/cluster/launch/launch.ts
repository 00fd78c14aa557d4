import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { MillraceError } from '../../core/errors.ts'
import type { AgentOrders } from './agent-command.ts'
import { agentScript } from './agent-script.ts'
import { commandOn, srunWords, sshOptions } from './command-on.ts'
import { commandLine, writeScript } from './orders.ts'
import type { NodeSpec } from './node-spec.ts'

/** An agent's process, or that of the program which has started it elsewhere. */
export interface Launched {
  /** Ends it by force: it was lost, or the run is over. */
  kill(): void
}

export interface LaunchEvents {
  /** It ended; `said` is the end of what it wrote to its error output before it had called. */
  ended(reason: string, said: string): void
}

const SAID = 2000

/** Starts the agent of a node. */
export function launch(spec: NodeSpec, orders: AgentOrders, run: string, events: LaunchEvents): Launched {
  switch (spec.by) {
    case 'local': {
      const { program, args } = commandOn(spec, ['agent'])
      return start(program, args, `${JSON.stringify(orders)}\n`, run, events)
    }
    case 'slurm':
      return start('srun', [...srunWords(spec), 'sh', '-s'], agentScript(orders), run, events)
    case 'ssh':
      return launchBySsh(spec.host, orders, run, events)
    case 'command':
      return launchByCommand(spec, orders, run, events)
    case 'block':
      throw new MillraceError('MR_INTERNAL', `node ${spec.name} is started by its job`)
  }
}

/** A queue passes nothing on to the standard input of what it starts: then the script goes in a file. */
function launchByCommand(
  { name, template }: NodeSpec & { by: 'command' },
  orders: AgentOrders,
  run: string,
  events: LaunchEvents,
): Launched {
  const script = agentScript(orders)
  const line = commandLine(template, name, () => writeScript(script, orders.node, run))
  return start('/bin/sh', ['-c', line], script, run, events)
}

/**
 * The system's ssh: keys, jump hosts and the user's settings all hold. The coordinator's socket is made known on the other
 * side, so that no port has to be open; it is a file there, which only this user can use.
 */
function launchBySsh(host: string, orders: AgentOrders, run: string, events: LaunchEvents): Launched {
  const [local = ''] = orders.addresses
  const [leases = ''] = orders.leases
  const there = `/tmp/millrace-${run}-${orders.node}`
  const leasesThere = `${there}-lease`
  const options = [
    'BatchMode=yes',
    'ExitOnForwardFailure=yes',
    'StreamLocalBindUnlink=yes',
    'ConnectTimeout=10',
  ]
  const own = sshOptions()
  const words = [
    ...own,
    ...options.flatMap(option => ['-o', option]),
    '-T',
    '-R',
    `${there}:${local}`,
    '-R',
    `${leasesThere}:${leases}`,
    host,
    // The user's own shell may be any.
    'sh -s',
  ]
  const known = { addresses: [there], leases: [leasesThere], removesSocket: true }
  // The agent removes the file of the socket when it has called; one that could not start has not. sshd keeps the file.
  const script = agentScript({ ...orders, ...known }, [there, leasesThere])
  return start('ssh', words, script, run, events)
}

/** `input`: what it reads. */
function start(
  program: string,
  words: readonly string[],
  input: string,
  run: string,
  events: LaunchEvents,
): Launched {
  const child: ChildProcess = spawn(program, words, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, MILLRACE_RUN: run },
    // Ctrl-C is for the coordinator, which ends its agents in order.
    detached: true,
  })
  let said = ''
  let isOver = false
  const over = (reason: string): void => {
    if (isOver) return
    isOver = true
    events.ended(reason, said.trim())
  }
  child.stdout?.on('data', (chunk: Buffer) => void process.stdout.write(chunk))
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-SAID)
    process.stderr.write(chunk)
  })
  child.on('error', error => {
    const { code } = error as NodeJS.ErrnoException
    over(code === 'ENOENT' ? `${program} is not installed` : error.message)
  })
  child.on('exit', (code, signal) =>
    over(signal ? `its process was ended by ${signal}` : `its process ended with ${code}`),
  )
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(input)
  for (const one of [child, child.stdin, child.stdout, child.stderr])
    (one as unknown as { unref(): void }).unref()
  return {
    kill: () => {
      child.kill('SIGKILL')
    },
  }
}
