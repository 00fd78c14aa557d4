import type { Readable, Writable } from 'node:stream'
import { FrameWriter } from '../link/frames.ts'
import type { FrameReader } from '../link/frames.ts'
import { JSON_FRAME } from './messages.ts'
import { PacedOutput } from './paced-output.ts'
import type { Pauses } from './paced-output.ts'
import { FrameIntake } from './slabs.ts'

const HEADER = 5

/** Frames over a pair of pipes: messages in JSON, and frames of relays that are passed on without a copy. */
export class FrameLink<In, Out> {
  readonly #output: Writable
  readonly #input: Readable
  readonly #paced: PacedOutput
  readonly #writer = new FrameWriter()

  constructor(
    input: Readable,
    output: Writable,
    events: {
      message(message: In): void
      /** The whole frame, as it came, and its content. */
      relayed(type: number, frame: Buffer, content: FrameReader): void
    },
  ) {
    this.#input = input
    this.#output = output
    this.#paced = new PacedOutput(output)
    output.on('error', () => undefined)
    const intake = new FrameIntake((type, content) => {
      if (type === JSON_FRAME) events.message(JSON.parse(content.rest().toString()) as In)
      else events.relayed(type, content.bytes.subarray(content.at - HEADER, content.end), content)
    })
    input.on('data', (chunk: Buffer) => intake.push(chunk))
    input.on('close', () => intake.end())
  }

  say(message: Out): void {
    this.#writer.begin(JSON_FRAME)
    this.#writer.raw(Buffer.from(JSON.stringify(message)))
    this.#writer.end()
    this.#paced.flush()
    this.#output.write(this.#writer.take())
  }

  /** Sends a frame as it is. The sources that are given stop until there is room again. */
  pass(frame: Buffer, ...sources: Pauses[]): void {
    this.#paced.write(frame, sources)
  }

  pause(): void {
    this.#input.pause()
  }

  resume(): void {
    this.#input.resume()
  }
}
