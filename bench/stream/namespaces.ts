import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeSpec } from '../../src/cluster/launch/node-spec.ts'

const ip = (...words: string[]): string =>
  execFileSync('ip', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
const tc = (...words: string[]): string =>
  execFileSync('tc', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

/** Machines for a benchmark: network namespaces on one bridge, each with a rate of its own in each direction (1 Gbit/s unless said). */
export class Namespaces {
  readonly #tag = `mr${process.pid}`
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-bench-net-'))
  readonly #count: number
  readonly #rate: string
  readonly #path = process.env['PATH']
  readonly #atExit = (): void => this.end()

  private constructor(count: number, rate: string) {
    this.#count = count
    this.#rate = rate
  }

  /** Why they cannot be made here; undefined when they can. */
  static get missing(): string | undefined {
    try {
      ip('netns', 'add', `mrtry${process.pid}`)
      ip('netns', 'del', `mrtry${process.pid}`)
      tc('-V')
      return undefined
    } catch {
      return 'network namespaces and tc need root and iproute2'
    }
  }

  /** `rate`: as tc has it. */
  static make(count: number, rate = '1gbit'): Namespaces {
    const made = new Namespaces(count, rate)
    try {
      made.#make()
    } catch (error) {
      made.end()
      throw error
    }
    return made
  }

  #make(): void {
    // Also when the benchmark is interrupted.
    process.once('exit', this.#atExit)
    if (process.listenerCount('SIGINT') === 0) process.once('SIGINT', () => process.exit(130))
    const bridge = `${this.#tag}b`
    ip('link', 'add', bridge, 'type', 'bridge')
    ip('link', 'set', bridge, 'up')
    for (let i = 1; i <= this.#count; i++) {
      const space = this.nameOf(i)
      const outer = `${this.#tag}v${i}`
      ip('netns', 'add', space)
      ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space)
      ip('link', 'set', outer, 'master', bridge, 'up')
      ip('-n', space, 'addr', 'add', this.addressOf(i) + '/24', 'dev', 'eth0')
      ip('-n', space, 'link', 'set', 'eth0', 'up')
      ip('-n', space, 'link', 'set', 'lo', 'up')
      const limit = ['root', 'tbf', 'rate', this.#rate, 'burst', '256kb', 'latency', '20ms']
      tc('qdisc', 'add', 'dev', outer, ...limit)
      execFileSync('ip', ['netns', 'exec', space, 'tc', 'qdisc', 'add', 'dev', 'eth0', ...limit])
    }
    // Nodes are started as by ssh, without a network between them and this process.
    const ssh = join(this.#folder, 'ssh')
    writeFileSync(
      ssh,
      [
        '#!/bin/sh',
        // Namespaces share the disk: a socket that ssh would forward is there by its name.
        'while [ $# -gt 2 ]; do case "$1 $2" in "-R /"*) ln -sf "${2#*:}" "${2%%:*}" ;; esac; shift; done',
        'exec ip netns exec "$1" /bin/sh -c "$2"',
        '',
      ].join('\n'),
    )
    chmodSync(ssh, 0o755)
    process.env['PATH'] = `${this.#folder}:${this.#path}`
  }

  nameOf(node: number): string {
    return `${this.#tag}n${node}`
  }

  addressOf(node: number): string {
    return `10.213.77.${node}`
  }

  /** Processes in one of them. */
  pids(node: number): number[] {
    return ip('netns', 'pids', this.nameOf(node)).split('\n').filter(Boolean).map(Number)
  }

  get specs(): NodeSpec[] {
    return Array.from({ length: this.#count }, (_, i) => {
      const name = this.nameOf(i + 1)
      return { by: 'ssh', name, host: name, cpus: null }
    })
  }

  /** Runs a program in one of them; rejects when it fails. */
  run(node: number, program: string, args: readonly string[], cwd?: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const words = ['netns', 'exec', this.nameOf(node), program, ...args]
      const child = spawn('ip', words, { cwd, stdio: ['ignore', 'ignore', 'inherit'], timeout: 300_000 })
      child.on('error', reject)
      child.on('close', code =>
        code === 0 ? resolve() : reject(new Error(`${program} ${args.join(' ')} ended with ${code}`)),
      )
    })
  }

  /** Removes all of it. */
  end(): void {
    process.off('exit', this.#atExit)
    process.env['PATH'] = this.#path
    for (let i = 1; i <= this.#count; i++) quietly(() => ip('netns', 'del', this.nameOf(i)))
    quietly(() => ip('link', 'del', `${this.#tag}b`))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

function quietly(body: () => void): void {
  try {
    body()
  } catch {
    // It was not made.
  }
}
