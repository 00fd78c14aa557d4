import { FrameWriter } from '../link/frames.ts'
import { CARRY_FRAME, EPOCH_FRAME, MARK_FRAME, RELAY, TAKEN_FRAME } from './messages.ts'
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

/** Instances of a step that will never end well. */
export function endedFrame(step: string, failed: number, reason: string): Buffer {
  return frameOf(RELAY.ended, step, writer => {
    const counts = Buffer.alloc(8)
    counts.writeUInt32LE(failed, 4)
    writer.raw(counts)
    writer.raw(Buffer.from(reason))
  })
}

/** All that was sent has to be sent again. */
export const againFrame = (): Buffer => frameOf(RELAY.again, '', () => undefined)

/** No more bytes of a file for now, or go on with it. */
export const holdFrame = (path: string, isHeld: boolean): Buffer =>
  frameOf(RELAY.hold, path, writer => writer.byte(isHeld ? 1 : 0))

/** What `ps` says of the other nodes. */
export const aroundFrame = (line: string): Buffer =>
  frameOf(RELAY.around, '', writer => writer.raw(Buffer.from(line)))

/** The path, or the name of a step, that a frame begins with. */
export function pathOf(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + 2, at + 2 + bytes.readUInt16LE(at))
}

/** The end of a step, sent on all ways of a node. */
export interface Mark {
  /** The how many-th end of that node. */
  readonly index: number
  /** Grows when everything is sent again, on other ways. */
  readonly edition: number
  readonly channels: readonly { readonly id: string; readonly chain: readonly number[] }[]
  /** For the relay. */
  readonly frame: string
}

export function markFrame(mark: Mark): Buffer {
  const writer = new FrameWriter()
  writer.begin(MARK_FRAME)
  writer.raw(Buffer.from(JSON.stringify(mark)))
  writer.end()
  return writer.take()
}

function numberFrame(type: number, number: number): Buffer {
  const writer = new FrameWriter()
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(number)
  writer.begin(type)
  writer.raw(bytes)
  writer.end()
  return writer.take()
}

export const epochFrame = (epoch: number): Buffer => numberFrame(EPOCH_FRAME, epoch)

export const takenFrame = (bytes: number): Buffer => numberFrame(TAKEN_FRAME, bytes)

/** What an epoch or a taken frame says. */
export const readNumber = (frame: Buffer): number => frame.readUInt32LE(frame.length - 4)

export const readMark = (bytes: Buffer): Mark => JSON.parse(bytes.toString()) as Mark

const CARRIED = 9

/** Names the way to a node through the coordinator. */
export const carriedId = (node: number): string => `c${node}`

/** A frame within one that the coordinator passes on. */
export function carryFrame(source: number, to: number, frame: Buffer): Buffer {
  const whole = Buffer.allocUnsafe(CARRIED + frame.length)
  whole.writeUInt32LE(4 + frame.length)
  whole[4] = CARRY_FRAME
  whole.writeUInt16LE(to, 5)
  whole.writeUInt16LE(source, 7)
  whole.set(frame, CARRIED)
  return whole
}

export function readCarried(frame: Buffer): { to: number; source: number; frame: Buffer } {
  return { to: frame.readUInt16LE(5), source: frame.readUInt16LE(7), frame: frame.subarray(CARRIED) }
}
