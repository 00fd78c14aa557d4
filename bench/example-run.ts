import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cleanEnvironment } from './run-program.ts'
import { spawnTool } from '../src/native/spawn-tool.ts'
import type { RunEvent } from '../src/core/events.ts'
import type { SlowDisk } from './slow-disk.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const bin = join(root, 'bin', 'millrace.js')

export interface ExampleRun {
  seconds: number
  /** Bytes asked for that did not come from the device, of all and of each rule. */
  hitRate: number
  hitRates: Map<string, number>
  /** Time of all tasks over elapsed time and CPUs, as the paper defines it. */
  utilization: number
}

/** An example with its folder on the disk, whose commands have the little memory of the disk's group. */
export class ExampleOnDisk {
  readonly #disk: SlowDisk
  /** More variables for its runs. */
  environment: Readonly<Record<string, string>> = {}
  readonly folder: string
  readonly #journals: string
  readonly #spawner: string

  private constructor(disk: SlowDisk, folder: string, journals: string, spawner: string) {
    this.#disk = disk
    this.folder = folder
    this.#journals = journals
    this.#spawner = spawner
  }

  static async install(disk: SlowDisk, example: string): Promise<ExampleOnDisk> {
    const base = join(disk.folder, '..', example)
    cpSync(join(root, 'examples', example), base, { recursive: true })
    writeFileSync(join(base, 'package.json'), '{"type":"module"}')
    mkdirSync(join(base, 'node_modules'))
    symlinkSync(root, join(base, 'node_modules', 'millrace'))
    const work = join(disk.folder, 'work')
    mkdirSync(work, { recursive: true })
    symlinkSync(work, join(base, 'work'))
    return new ExampleOnDisk(disk, base, base, disk.wrapper(await spawnTool()))
  }

  make(target: string, policy: string, args: readonly string[], jobs = 2, limited = true): void {
    const { status, signal, stderr } = spawnSync(
      process.execPath,
      [bin, 'make', target, '-j', String(jobs), '--policy', policy, '--', ...args],
      {
        cwd: this.folder,
        stdio: ['ignore', 'ignore', 'pipe'],
        encoding: 'utf8',
        env: {
          ...cleanEnvironment(),
          MILLRACE_PROGRESS: 'none',
          ...this.environment,
          ...(limited ? { MILLRACE_SPAWNER: this.#spawner } : {}),
        },
      },
    )
    if (status === 0) return
    // In one line: that is all of an error that the table has room for.
    const said = stderr.trim().split('\n').slice(-12).join(' | ')
    throw new Error(`make ${target} --policy ${policy} ended with ${signal ?? status}: ${said}`)
  }

  clean(...paths: string[]): void {
    for (const path of paths) execFileSync('rm', ['-rf', join(this.folder, path)])
  }

  measure(target: string, policy: string, args: readonly string[], jobs = 2): ExampleRun {
    this.#disk.forget()
    const start = performance.now()
    this.make(target, policy, args, jobs)
    this.#disk.sync()
    const seconds = (performance.now() - start) / 1000
    return { seconds, ...this.#lookBack(jobs) }
  }

  /** What the last run would have taken under each policy, by the times that its tasks had: only the order differs. */
  simulate(policies: readonly string[]): number[] {
    const json = execFileSync(
      process.execPath,
      [bin, 'simulate', 'last', '--no-journal', '--json', '--compare', policies.join(',')],
      { cwd: this.#journals, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    )
    const lines = json.trim().split('\n')
    return lines.map(line => (JSON.parse(line) as { makespan: number }).makespan)
  }

  #lookBack(jobs: number): Omit<ExampleRun, 'seconds'> {
    if (!existsSync(join(this.#journals, '.millrace'))) throw new Error('the run left no journal')
    const json = execFileSync(process.execPath, [bin, 'show', '--json'], {
      cwd: this.#journals,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    })
    const events = json
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as RunEvent)
    const names = new Map<number, string>()
    const kinds = new Map<number, number>()
    const started = new Map<number, number>()
    const bytes = new Map<string, { asked: number; read: number }>()
    let busy = 0
    let end = 0
    for (const event of events) {
      end = Math.max(end, event.at)
      if (event.type === 'kind-defined') names.set(event.kind, event.name)
      else if (event.type === 'submitted') kinds.set(event.task, event.kind)
      else if (event.type === 'started') started.set(event.task, event.at)
      else if (event.type === 'finished') {
        busy += event.at - (started.get(event.task) ?? event.at)
        if (!event.usage) continue
        const name = names.get(kinds.get(event.task) ?? -1) ?? '?'
        const sum = bytes.get(name) ?? { asked: 0, read: 0 }
        bytes.set(name, { asked: sum.asked + event.usage.askedBytes, read: sum.read + event.usage.readBytes })
      }
    }
    const rate = ({ asked, read }: { asked: number; read: number }): number => Math.max(0, 1 - read / asked)
    const all = [...bytes.values()].reduce((a, b) => ({ asked: a.asked + b.asked, read: a.read + b.read }))
    return {
      hitRate: rate(all),
      hitRates: new Map([...bytes].map(([name, sum]) => [name, rate(sum)])),
      utilization: busy / (end * jobs),
    }
  }
}
