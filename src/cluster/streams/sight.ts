import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StreamError } from '../../stream/stream-error.ts'

/** What a node is asked to do with the probe: a small file in the directory that all nodes are said to see. */
export type ProbeOrder =
  /** Appends a byte, and leaves the file open. */
  | { readonly act: 'append'; readonly path: string }
  | { readonly act: 'sync'; readonly path: string }
  /** Whether the file has this many bytes on this node, within this many milliseconds. */
  | { readonly act: 'look'; readonly path: string; readonly bytes: number; readonly within: number }
  | { readonly act: 'remove'; readonly path: string }

/** When other nodes see what a node has written: at once, or after `fsync`. */
export type Sight = 'written' | 'synced'

const LOOK_EACH = 20

/** The part of a node in the probe. */
export class Prober {
  #open: FileHandle | null = null

  /** Whether it went well: for a look, whether the bytes were there. */
  async obey(order: ProbeOrder): Promise<boolean> {
    try {
      switch (order.act) {
        case 'append':
          this.#open ??= await open(order.path, 'a')
          await this.#open.write('x')
          return true
        case 'sync':
          await this.#open?.sync()
          return true
        case 'look':
          return await hasBytes(order.path, order.bytes, order.within)
        case 'remove':
          await this.#open?.close()
          this.#open = null
          rmSync(order.path, { force: true })
          return true
      }
    } catch {
      return false
    }
  }
}

async function hasBytes(path: string, bytes: number, milliseconds: number): Promise<boolean> {
  for (let left = milliseconds; ; left -= LOOK_EACH) {
    // A file is opened anew for each look: that makes a file system ask for its size again.
    const file = await open(path, 'r').catch(() => null)
    const found = file ? (await file.read(Buffer.alloc(bytes), 0, bytes, 0)).bytesRead : 0
    await file?.close()
    if (found === bytes) return true
    if (left <= 0) return false
    await sleep(LOOK_EACH)
  }
}

export interface ProbedNode {
  readonly name: string
  probe(order: ProbeOrder): Promise<boolean>
}

/**
 * Finds out what the file system of a directory promises, by writing on each node and looking on the others. The file grows while
 * it is open and after others have looked at it, as streams do. Throws when a node does not see what another has written.
 */
export async function probeSight(dir: string, nodes: readonly ProbedNode[], timeout = 2000): Promise<Sight> {
  let sight: Sight = 'written'
  for (const writer of nodes) {
    const path = join(dir, `.millrace-probe-${randomBytes(6).toString('hex')}`)
    const others = nodes.filter(node => node !== writer)
    const unseeing = async (bytes: number): Promise<ProbedNode | undefined> => {
      const looks = others.map(node => node.probe({ act: 'look', path, bytes, within: timeout }))
      const seen = await Promise.all(looks)
      return others.find((_, i) => !seen[i])
    }
    try {
      for (const bytes of [1, 2, 3]) {
        if (!(await writer.probe({ act: 'append', path }))) throw cannotWrite(dir, writer)
        if (sight === 'synced') await writer.probe({ act: 'sync', path })
        let blind = await unseeing(bytes)
        if (blind && sight === 'written') {
          await writer.probe({ act: 'sync', path })
          sight = 'synced'
          blind = await unseeing(bytes)
        }
        if (blind) throw notShared(dir, writer, blind)
      }
    } finally {
      await writer.probe({ act: 'remove', path })
    }
  }
  return sight
}

const cannotWrite = (dir: string, { name }: ProbedNode): StreamError =>
  new StreamError(
    'MR_STREAM_DIR',
    `${name} cannot write in ${dir}`,
    'name a directory that all nodes can write',
  )

const notShared = (dir: string, writer: ProbedNode, blind: ProbedNode): StreamError =>
  new StreamError(
    'MR_STREAM_DIR',
    `what ${writer.name} writes in ${dir} is not seen by ${blind.name}`,
    'name a directory that all nodes share, or leave out --dir: then bytes go from node to node',
  )
