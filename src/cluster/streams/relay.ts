import { execFile, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import type { OnReadOpts, SocketConstructorOpts } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { promisify } from 'node:util'
import type { Board } from '../../stream/board/board.ts'
import type { FrameReader } from '../link/frames.ts'
import type { Holds } from './channel.ts'
import { FrameIntake } from './slabs.ts'

/** The process that keeps the board of this node in step with those of others: see preload/tool_relay.h. */
export class Relay {
  readonly stdin: Writable
  readonly #process: ChildProcess
  readonly #output: Socket

  private constructor(process: ChildProcess, stdin: Writable, output: Socket) {
    this.#process = process
    this.#output = output
    this.stdin = stdin
    this.stdin.on('error', () => undefined)
  }

  /** `frame` is told of what it says; the bytes are valid until it returns, unless they are kept. */
  static async start(
    board: Board,
    how: readonly string[],
    frame: (type: number, content: FrameReader) => void,
  ): Promise<Relay> {
    // A pipe by name: what comes from one that `spawn` makes cannot be read into memory of ours.
    const folder = mkdtempSync(join(tmpdir(), 'millrace-relay-'))
    const path = join(folder, 'frames')
    let end = -1
    try {
      await promisify(execFile)('mkfifo', ['-m', '600', path])
      const begin = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      end = openSync(path, constants.O_WRONLY)
      const intake = new FrameIntake(frame)
      const callback = (count: number): boolean => {
        intake.took(count)
        return true
      }
      const onread: OnReadOpts = { buffer: () => intake.room(LEAST), callback }
      const options: SocketConstructorOpts & { onread: OnReadOpts } = {
        fd: begin,
        readable: true,
        writable: false,
        onread,
      }
      const output = new Socket(options)
      output.on('close', () => intake.end())
      const words = ['relay', '-w', board.workflow, ...how]
      const process = spawn(board.tools.board, words, { stdio: ['pipe', end, 'inherit'] })
      return new Relay(process, process.stdin as Writable, output)
    } finally {
      if (end >= 0) closeSync(end)
      rmSync(folder, { recursive: true, force: true })
    }
  }

  /** Its process has ended by itself. */
  onExit(ended: (code: number | null) => void): void {
    this.#process.on('exit', ended)
  }

  get source(): Holds {
    return this.#output
  }
}

/** Room for a read. */
const LEAST = 256 << 10
