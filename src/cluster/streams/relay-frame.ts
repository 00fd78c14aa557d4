import { FrameWriter } from '../link/frames.ts'
import { RELAY } from './messages.ts'
import type { Wanted } from './messages.ts'

/** A frame that a relay understands: a name, and what its type asks for. */
export function frameOf(type: number, name: string, rest: (writer: FrameWriter) => void): Buffer {
  const writer = new FrameWriter()
  const bytes = Buffer.from(name)
  const length = Buffer.alloc(2)
  length.writeUInt16LE(bytes.length)
  writer.begin(type)
  writer.raw(length)
  writer.raw(bytes)
  rest(writer)
  writer.end()
  return writer.take()
}

/** What a relay has to know before it looks at the board. */
export function wantedFrames(wanted: readonly Wanted[]): Buffer {
  const frames = wanted.map(({ pattern, hasWildcards, step }) =>
    frameOf(RELAY.want, pattern, writer => {
      writer.byte(hasWildcards ? 1 : 0)
      writer.raw(Buffer.from(step))
    }),
  )
  return Buffer.concat([...frames, frameOf(RELAY.go, '', () => undefined)])
}

/** The path, or the name of a step, that a frame begins with. */
export function pathOf(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + 2, at + 2 + bytes.readUInt16LE(at))
}
