import { frameOf } from './relay-frame.ts'
import { RELAY } from './messages.ts'

/** Where each file was created, and what other nodes have to hear when that node is lost. */
export class Homes {
  /** Files that are not complete, by path. */
  readonly #open = new Map<string, number>()

  heard(type: number, path: string, node: number): void {
    if (type === RELAY.begin) this.#open.set(path, node)
    else if (type === RELAY.complete || type === RELAY.fail || type === RELAY.cut) this.#open.delete(path)
  }

  /** Frames that fail all files which the node had not completed. */
  lost(node: number, reason: string): { path: string; frame: Buffer }[] {
    const frames: { path: string; frame: Buffer }[] = []
    for (const [path, home] of this.#open) {
      if (home !== node) continue
      this.#open.delete(path)
      frames.push({ path, frame: frameOf(RELAY.fail, path, writer => writer.raw(Buffer.from(reason))) })
    }
    return frames
  }
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
