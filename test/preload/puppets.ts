// Processes that do single calls when told to (fixtures/puppet.c), each under the library.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { pause, type Workflow } from './harness.ts'

const CHANNELS = 4

const lives = (pid: number): boolean => {
  if (!existsSync(`/proc/${pid}/stat`)) return false
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** One process; `ask` sends a line and gives the answer when it comes. */
export class Puppet {
  readonly #channel: Duplex
  #text = ''
  #ended = false
  #answered: ((line: string | undefined) => void) | undefined
  pid = 0

  constructor(channel: Duplex) {
    this.#channel = channel
    channel.on('data', (part: Buffer) => {
      this.#text += part.toString()
      this.#deliver()
    })
    const ended = (): void => {
      this.#ended = true
      this.#deliver()
    }
    channel.on('close', ended)
    channel.on('error', ended)
  }

  #deliver(): void {
    const end = this.#text.indexOf('\n')
    if (!this.#answered || (end < 0 && !this.#ended)) return
    const line = end < 0 ? undefined : this.#text.slice(0, end)
    this.#text = this.#text.slice(end + 1)
    const answered = this.#answered
    this.#answered = undefined
    answered(line)
  }

  answer(): Promise<string | undefined> {
    return new Promise(resolve => {
      this.#answered = resolve
      this.#deliver()
    })
  }

  ask(line: string): Promise<string | undefined> {
    this.tell(line)
    return this.answer()
  }

  tell(line: string): void {
    this.#channel.write(`${line}\n`)
  }

  /** It was told to end, or is killed now: comes back when it is gone. */
  async gone(kill: boolean): Promise<void> {
    if (kill) process.kill(this.pid, 'SIGKILL')
    while (lives(this.pid)) await pause(1)
  }
}

/** A program that may fork puppets, each on a socket that it has from the start. */
export class Theatre {
  readonly #child: ChildProcess
  readonly #channels: Duplex[]
  #used = 1
  readonly first: Puppet

  constructor(workflow: Workflow, app: string, program: string, env: Record<string, string>) {
    const sockets = Array.from({ length: CHANNELS }, () => 'pipe' as const)
    this.#child = spawn(program, [], {
      cwd: workflow.dir,
      env: { ...process.env, ...workflow.env(app), ...env },
      stdio: ['ignore', 'ignore', 'inherit', ...sockets],
    })
    this.#channels = this.#child.stdio.slice(3) as Duplex[]
    this.first = new Puppet(this.#channels[0]!)
    this.first.pid = this.#child.pid!
  }

  get canFork(): boolean {
    return this.#used < CHANNELS
  }

  async fork(from: Puppet): Promise<Puppet> {
    const made = new Puppet(this.#channels[this.#used]!)
    made.pid = Number(await from.ask(`f ${this.#used++}`))
    await made.answer()
    return made
  }

  close(): void {
    this.#child.kill('SIGKILL')
    for (const channel of this.#channels) channel.destroy()
  }
}
