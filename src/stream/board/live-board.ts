import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { stepArgv, type StepBoard } from './board.ts'
import { escapeField } from './plan-lines.ts'
import { StreamError } from '../stream-error.ts'
import { streamTools, type Tools } from '../run/toolchain.ts'

export interface FileRules {
  /** Closes that complete it; 0: the end of its producer. */
  closes: number
  /** It may be read as it grows. */
  grows: boolean
  /** A directory, with all that is in it. */
  directory?: boolean
  /** Files that complete the directory. */
  files?: number
  /** The path of a file that completes it. */
  beside?: string
}

/** What the board says of a file: it is complete, or it will never be, and why. */
export type Heard = (path: string, failure: string | null) => void

/**
 * A board to which steps and files are added while it is in use, through a process that also tells what has
 * become complete. The board goes with that process, and the process with this one.
 */
export class LiveBoard implements StepBoard {
  readonly tools: Tools
  readonly workflow: string
  readonly #child: ChildProcessByStdio<Writable, Readable, null>
  readonly #heard: Heard
  readonly #waiting = new Map<string, () => void>()
  #syncs = 0
  #rest = ''
  #ready: (() => void) | null = null
  #gone: Error | null = null
  #refuse: ((error: Error) => void) | null = null

  static async start(
    workflow: string,
    dir: string,
    layer: string | undefined,
    heard: Heard,
  ): Promise<LiveBoard> {
    const board = new LiveBoard(await streamTools(), workflow, heard)
    await new Promise<void>((resolve, reject) => {
      board.#ready = resolve
      board.#refuse = reject
      board.#write(
        'millrace-plan\t1',
        `workflow\t${escapeField(workflow)}`,
        `dir\t${escapeField(dir)}`,
        ...(layer === undefined ? [] : [`layer\t${escapeField(layer)}`]),
        'end',
      )
    })
    return board
  }

  private constructor(tools: Tools, workflow: string, heard: Heard) {
    this.tools = tools
    this.workflow = workflow
    this.#heard = heard
    // Of its own group: it must outlive a Ctrl-C until the steps have ended.
    const child = spawn(tools.board, ['serve'], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    this.#child = child
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#hear(text))
    child.stdin.on('error', () => {})
    child.on('error', error => this.#lose(error.message))
    child.on('close', code => this.#lose(`it ended with code ${code}`))
    // While it is needed, tasks keep this process alive.
    child.unref()
    for (const end of [child.stdin, child.stdout]) if (end instanceof Socket) end.unref()
  }

  /** A step that will be started once. */
  step(name: string): void {
    this.#write(`step\t${escapeField(name)}`)
  }

  /** A file that the step writes; its path is relative to the directory of the board. */
  file(path: string, step: string, rules: FileRules): void {
    const { closes, grows, directory, files, beside } = rules
    const early = beside !== undefined ? 'on_file' : closes > 0 ? `on_close:${closes}` : 'on_termination:0'
    const commit = files === undefined ? early : `on_n_files:${files}`
    const kind = directory === true ? 'dir' : 'file'
    const fields = ['rule', kind, 'exact', escapeField(path), escapeField(step), commit]
    const more = beside === undefined ? [] : [escapeField(beside)]
    this.#write([...fields, grows ? 'no_update' : 'update', ...more].join('\t'))
  }

  /** When this resolves, all that was written before is known to the board, and all that it knew was heard. */
  sync(): Promise<void> {
    if (this.#gone) return Promise.reject(this.#gone)
    const word = String(++this.#syncs)
    return new Promise(resolve => {
      this.#waiting.set(word, resolve)
      this.#write(`sync\t${word}`)
    })
  }

  argv(step: string, argv: readonly string[]): string[] {
    return stepArgv(this.tools, this.workflow, step, argv)
  }

  end(): void {
    this.#child.stdin.end()
  }

  #write(...lines: string[]): void {
    this.#child.stdin.write(lines.map(line => `${line}\n`).join(''))
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const [what, name = '', reason = ''] = line.split('\t')
      if (what === 'ready') this.#ready?.()
      else if (what === 'committed') this.#heard(unescape(name), null)
      else if (what === 'failed') this.#heard(unescape(name), unescape(reason))
      else if (what === 'synced') {
        this.#waiting.get(name)?.()
        this.#waiting.delete(name)
      } else this.#lose(name)
    }
  }

  #lose(reason: string): void {
    this.#gone ??= new StreamError(
      'MR_STREAM_BOARD',
      `the board of streams is gone: ${reason}`,
      'see the reason',
    )
    this.#refuse?.(this.#gone)
    for (const resolve of this.#waiting.values()) resolve()
    this.#waiting.clear()
  }
}

const unescape = (text: string): string =>
  text.replace(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
