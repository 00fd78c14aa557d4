import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { after } from 'node:test'

const root = fileURLToPath(new URL('../..', import.meta.url))
export const bin = join(root, 'bin', 'millrace.js')

/** A newcomer's folder with these files, in which millrace is installed. Gone after the test file. */
export function makeFolder(
  files: Record<string, string>,
  { type = 'module', installed = true, name = 'my folder' } = {},
): string {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-cli-')))
  after(() => rmSync(parent, { recursive: true, force: true }))
  const folder = join(parent, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'newcomer', type }))
  if (installed) {
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules', 'millrace'))
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

/** A millrace that runs, with what it has printed so far. */
export class Running {
  readonly process: ChildProcessWithoutNullStreams
  stdout = ''
  stderr = ''
  readonly #looking = new Set<() => void>()
  readonly ended: Promise<Ended>

  constructor(folder: string, args: readonly string[], env: Record<string, string> = {}) {
    this.process = spawn(process.execPath, [bin, ...args], {
      cwd: folder,
      env: environment(env),
      // So that a hang is a failure and not a hang of all tests.
      timeout: 120_000,
      killSignal: 'SIGKILL',
    })
    for (const stream of ['stdout', 'stderr'] as const) {
      this.process[stream].setEncoding('utf8').on('data', (text: string) => {
        this[stream] += text
        for (const look of this.#looking) look()
      })
    }
    this.ended = new Promise(resolve => {
      this.process.on('close', code => {
        for (const look of this.#looking) look()
        resolve({ code, stdout: this.stdout, stderr: this.stderr })
      })
    })
  }

  /** Waits until it has printed this; no clock is involved. */
  printed(stream: 'stdout' | 'stderr', text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (this[stream].includes(text)) resolve()
        else if (this.process.exitCode !== null) reject(new Error(`ended without '${text}': ${this.stderr}`))
        else return
        this.#looking.delete(look)
      }
      this.#looking.add(look)
      look()
    })
  }
}

export const millrace = (
  folder: string,
  args: readonly string[],
  env?: Record<string, string>,
): Promise<Ended> => new Running(folder, args, env).ended

function environment(added: Record<string, string>): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = { ...process.env, LANG: 'C.UTF-8' }
  for (const name of Object.keys(env)) if (/^MILLRACE_|COLOR|^CI$|^NODE_/.test(name)) delete env[name]
  return { ...env, ...added }
}

export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line) as Record<string, unknown>)
}
