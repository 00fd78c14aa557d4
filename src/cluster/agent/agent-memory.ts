import { BLOB } from '../link/frame-types.ts'
import type { FrameReader } from '../link/frames.ts'
import type { Incoming } from '../transfer/incoming.ts'
import type { Outgoing } from '../transfer/outgoing.ts'
import { ONCE, TEAM } from '../coordinator/node-memory.ts'

/** The buffers of a node: those that the coordinator sent, and those that tasks made here. Kept until the coordinator says that they are no longer needed. */
export class AgentMemory {
  readonly incoming: Incoming
  readonly #outgoing: Outgoing
  #last = -1

  constructor(incoming: Incoming, outgoing: Outgoing) {
    this.incoming = incoming
    this.#outgoing = outgoing
  }

  /** Calls when all that the references mean is here, with buffers that threads can share. */
  resolve(references: readonly number[], go: (buffers: SharedArrayBuffer[]) => void): void {
    const numbers = references.map(reference => Math.floor(reference / 4))
    for (const [i, number] of numbers.entries())
      if ((references[i] as number) % 4 === TEAM) this.incoming.pin(number)
    this.incoming.whenHere(numbers, () => {
      go(
        references.map((reference, i) => {
          const number = numbers[i] as number
          const buffer = this.#shared(number)
          if (reference % 4 === ONCE) this.incoming.forget(number)
          return buffer
        }),
      )
    })
  }

  /** Sends what a task made here, and keeps it for tasks that read it here. */
  send(buffer: ArrayBufferLike): number {
    const number = this.keep(buffer)
    this.#outgoing.send({ number, buffer, offset: 0, length: buffer.byteLength })
    return number
  }

  /** Sends what is not needed here. */
  sendOnce(buffer: ArrayBufferLike): number {
    const number = (this.#last += 2)
    this.#outgoing.send({ number, buffer, offset: 0, length: buffer.byteLength })
    return number
  }

  /** Keeps what a task made here until it is wanted. */
  keep(buffer: ArrayBufferLike): number {
    const number = (this.#last += 2)
    this.incoming.put(number, buffer)
    return number
  }

  /** The coordinator wants it now. It may still be arriving here, from another node. */
  bring(number: number): void {
    this.#outgoing.sendBlocks(this.incoming.blocksOf(number, number))
  }

  words(content: FrameReader): void {
    const number = content.varint()
    const index = content.varint()
    const word = content.varint()
    this.incoming.whenHere([number], ([buffer]) => {
      Atomics.store(new Int32Array(buffer as SharedArrayBuffer), index, word | 0)
    })
  }

  receive(type: number, content: FrameReader): void {
    if (type === BLOB) this.incoming.frame(content)
  }

  #shared(number: number): SharedArrayBuffer {
    const buffer = this.incoming.get(number) as ArrayBufferLike
    if (buffer instanceof SharedArrayBuffer) return buffer
    const copy = new SharedArrayBuffer(buffer.byteLength)
    new Uint8Array(copy).set(new Uint8Array(buffer))
    this.incoming.put(number, copy)
    return copy
  }
}
