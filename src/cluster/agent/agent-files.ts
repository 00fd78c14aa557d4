import { constants, existsSync } from 'node:fs'
import { cp, link, mkdir, rm, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Copy, FileAnswer, FileOrder } from '../files/file-orders.ts'
import { NotThere, readTree, walk } from '../files/tree.ts'
import type { Incoming } from '../transfer/incoming.ts'
import type { Outgoing } from '../transfer/outgoing.ts'
import type { Peers } from '../transfer/peers.ts'
import type { ParcelCache } from './parcel-cache.ts'

/** The files of an agent whose machine does not see the folders of the coordinator. */
export class AgentFiles {
  readonly #incoming: Incoming
  readonly #outgoing: Outgoing
  readonly #peers: Peers
  readonly #answer: (answer: FileAnswer) => void
  /** Hears where the program is, or why it is not there. */
  program: { isAt(folder: string): void; cannotBe(why: string): void } | null = null
  cache: ParcelCache | null = null
  #making: Promise<void> = Promise.resolve()
  #taking: Promise<unknown> = Promise.resolve()

  constructor(incoming: Incoming, outgoing: Outgoing, peers: Peers, answer: (answer: FileAnswer) => void) {
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#peers = peers
    this.#answer = answer
  }

  order(id: number, order: FileOrder): void {
    this.#do(order).then(
      more => this.#answer({ id, ...more }),
      (error: unknown) => this.#answer({ id, error: (error as Error).message }),
    )
  }

  /** What is half there goes. */
  async end(): Promise<void> {
    this.#incoming.trees.cutOff(new Error('the run ended'))
    await this.#taking
  }

  async #takeProgram(hash: string, number: number): Promise<Partial<FileAnswer>> {
    const { cache, program } = this
    if (!cache || !program) return {}
    const folder = await cache.find(hash)
    if (folder !== null) {
      program.isAt(folder)
      return {}
    }
    const taking = cache.take(hash, number, this.#incoming.trees)
    this.#taking = taking.catch(() => undefined)
    taking.then(
      at => program.isAt(at),
      (error: unknown) => program.cannotBe((error as Error).message),
    )
    return { isMissing: true }
  }

  async #pull(order: FileOrder & { op: 'pull' }): Promise<Partial<FileAnswer>> {
    const { number, path, node, addresses, from } = order
    const { trees } = this.#incoming
    const stored = trees.expect(number, path).catch((error: unknown) => error as Error)
    const isSent = await this.#peers.fetchTree(node, addresses, from, number)
    if (!isSent) trees.fail(number, new Error('it could not be got from the other node'))
    const bytes = await stored
    if (!isSent) return { isUnreachable: true }
    if (bytes instanceof NotThere) return { isMissing: true }
    if (typeof bytes !== 'number') throw bytes
    return { bytes, free: await freeAt(path) }
  }

  async #do(order: FileOrder): Promise<Partial<FileAnswer>> {
    switch (order.op) {
      case 'put':
        return {
          bytes: await this.#incoming.trees.expect(order.number, order.path),
          free: await freeAt(order.path),
        }
      case 'get':
        if (!existsSync(order.path)) return { isMissing: true }
        this.#outgoing.sendStream(order.number, readTree(order.path, order.mayChange))
        return { free: await freeAt(order.path) }
      case 'pull':
        return this.#pull(order)
      case 'look':
        return {
          sizes: await Promise.all(order.paths.map(sizeAt)),
          free: await freeAt(order.paths[0] ?? '/'),
        }
      case 'program':
        return this.#takeProgram(order.hash, order.number)
      case 'make':
        await (this.#making = this.#making.then(
          () => make(order),
          () => make(order),
        ))
        return {}
    }
  }
}

async function make({ clear, folders, copies }: FileOrder & { op: 'make' }): Promise<void> {
  for (const path of clear) await rm(path, { recursive: true, force: true })
  for (const folder of folders) await mkdir(folder, { recursive: true })
  for (const one of copies) await copy(one)
}

async function copy({ from, to, isRead }: Copy): Promise<void> {
  await rm(to, { recursive: true, force: true })
  await mkdir(dirname(to), { recursive: true })
  // A directory has no second name, and a disk may not give one to a file.
  if (isRead && (await link(from, to).then(isDone, isNot))) return
  await cp(from, to, {
    recursive: true,
    preserveTimestamps: true,
    verbatimSymlinks: true,
    mode: constants.COPYFILE_FICLONE,
  })
}

/** What is free on the disk of a path; unlimited where that is not known. */
async function freeAt(path: string): Promise<number> {
  const found = await statfs(dirname(path)).catch(() => null)
  return found ? found.bavail * found.bsize : Infinity
}

/** Null when nothing is there. */
async function sizeAt(path: string): Promise<number | null> {
  let bytes = 0
  try {
    for await (const { facts } of walk(path)) if (facts.isFile()) bytes += Number(facts.size)
  } catch {
    return null
  }
  return bytes
}

const isDone = (): boolean => true
const isNot = (): boolean => false
