import { fstatSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'

type Stream = Pick<NodeJS.WriteStream, 'write'>
type Write = (text: string) => unknown

/** Where a run writes: results to `stdout`, all else to `stderr`, whose size and kind decide how progress is shown. */
export interface StandardStreams {
  readonly stdout: Stream
  readonly stderr: Stream & Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>>
  /** Whether both are one terminal, or one file. */
  goToSamePlace(): boolean
}

/** On a diverted `write`: the one that reaches the stream. Global, for programs with a copy of their own. */
const REAL = Symbol.for('millrace.write')

/** Writes to the stream itself, also while it is diverted. */
export function writerOf(stream: Stream): Write {
  const { write } = stream as { write: Write & { [REAL]?: Write } }
  return write[REAL] ?? write.bind(stream)
}

/** Sends what is written to a stream elsewhere, until the function that it returns is called. */
export function divert(stream: Stream, sink: (text: string) => void): () => void {
  const before = stream.write
  const decoder = new StringDecoder('utf8')
  let isOver = false
  const write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    // Others may hold on to this function after us.
    if (isOver) return (before as (...args: unknown[]) => boolean).call(stream, chunk, ...rest)
    const [encoding] = rest
    if (typeof chunk === 'string' && (typeof encoding !== 'string' || /^utf-?8$/i.test(encoding))) sink(chunk)
    else {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding as BufferEncoding) : chunk
      sink(decoder.write(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)))
    }
    const done = rest.findLast(argument => typeof argument === 'function')
    if (done) process.nextTick(done as () => void)
    return true
  }
  const diverted = Object.assign(write, { [REAL]: writerOf(stream) }) as unknown as typeof stream.write
  stream.write = diverted
  return () => {
    isOver = true
    if (stream.write === diverted) stream.write = before
  }
}

/** The streams of this process. */
export const processStreams: StandardStreams = {
  get stdout() {
    return process.stdout
  },
  get stderr() {
    return process.stderr
  },
  goToSamePlace,
}

function goToSamePlace(): boolean {
  try {
    const [out, error] = [fstatSync(1), fstatSync(2)]
    return out.dev === error.dev && out.ino === error.ino && out.rdev === error.rdev
  } catch {
    return false
  }
}
