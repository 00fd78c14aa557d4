import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { atHome } from '../../core/data/staging-name.ts'
import { MillraceError } from '../../core/errors.ts'
import type { ApartFile, ApartFolder } from '../../node/files/apart-files.ts'
import type { Away } from '../../storage/away.ts'
import type { FileAnswer, FileOrder } from '../files/file-orders.ts'
import { readParcel } from '../files/parcel.ts'
import type { Parcel } from '../files/parcel.ts'
import { readTree, stampOf } from '../files/tree.ts'
import { TO_AGENT } from '../link/frame-types.ts'
import { pack } from '../link/structured.ts'
import { AwayFile } from './away-file.ts'
import type { Holder } from './away-file.ts'
import type { NodeLink } from './node-link.ts'
import { NodeLost } from './remote-processes.ts'

/** What the node has: a copy of what has, or had, this stamp here. */
interface Copied {
  stamp: string
  readonly bytes: number
  /** It is on nodes only. */
  away: AwayFile | null
  /** By path there: attempts that use it under this name. */
  readonly users: Map<string, number>
  /** It was asked to come here, to make room. */
  isAsked: boolean
}

/**
 * The folder of a node that sees none of ours: what is at a path here is at the same path below it. A file goes there once,
 * however many tasks read it, and is sent again only if it is another one by then.
 */
export class NodeFolder implements ApartFolder, Holder {
  readonly root: string
  readonly #link: NodeLink
  readonly #asked = new Map<number, { resolve(answer: FileAnswer): void; reject(error: Error): void }>()
  /** By stamp: the last in the list is the one that was used last. */
  readonly #copies = new Map<string, Copied>()
  /** The same by path there: one file may have several names. */
  readonly #byName = new Map<string, Copied>()
  /** By path there: what is being done with it. */
  readonly #busy = new Map<string, Promise<unknown>>()
  readonly #joined = new Map<string, number>()
  /** What was sent or made there and is kept. */
  #bytes = 0
  /** What was free there when that was last heard of, and what was removed since. */
  #free = Infinity
  /** The files of attempts that wait for room, and of those that may write now. */
  readonly #waiting = new Set<readonly ApartFile[]>()
  readonly #writing = new Set<readonly ApartFile[]>()
  /** The most that one attempt has written there. */
  #most = 0
  /** Files that come here to make room. */
  readonly #coming = new Set<Promise<void>>()
  #lastOrder = 0
  #lastStream = 0
  isLost = false
  serving = 0
  /** Nodes that it could not reach. */
  readonly #unreachable = new Set<NodeFolder>()

  constructor(link: NodeLink, root: string) {
    this.#link = link
    this.root = root
  }

  get node(): number {
    return this.#link.node
  }

  there(path: string): string {
    return join(this.root, path)
  }

  here(path: string): string {
    return path.startsWith(`${this.root}/`) ? path.slice(this.root.length) : path
  }

  // --- what a task needs there ---

  async give(files: readonly ApartFile[]): Promise<void> {
    await this.#waitForRoom(files)
    const folders = files.flatMap(({ path, use, isDirectory }) => {
      if (use === 'read') return []
      return [this.there(use === 'write' && isDirectory ? path : dirname(path))]
    })
    const clear = files.filter(({ use }) => use === 'write').map(({ path }) => this.there(path))
    // An earlier task may have written under this name: what it made has another name by now, or is sent again.
    for (const there of clear) this.#forget(there)
    if (folders.length > 0) await this.#ask({ op: 'make', clear, folders, copies: [] })
    await Promise.all(files.map(file => this.#give(file)))
  }

  async #give({ path, use, from, away }: ApartFile): Promise<void> {
    if (use === 'write') return
    const there = this.there(path)
    if (away) return this.#inTurn(there, () => this.#giveAway(there, away as AwayFile, use === 'read'))
    if (use === 'read') return this.bring(path, true)
    if (use === 'join') {
      const users = this.#joined.get(there) ?? 0
      this.#joined.set(there, users + 1)
      // Others are at work on it, with what was here when they began.
      return this.#inTurn(there, async () => {
        if (users === 0) await this.#send(path, there)
      })
    }
    const source = from === null ? null : await this.#knownAt(resolve(from))
    if (source === null) return this.#inTurn(there, async () => void (await this.#send(path, there)))
    this.#forget(there)
    await this.#copy(path, source, there, false)
  }

  /** The same for what is on nodes only. */
  async #giveAway(there: string, away: AwayFile, isRead: boolean): Promise<void> {
    if (!isRead || !away.isAt(this.#byName.get(there)?.stamp)) await this.#bringAway(there, away, isRead)
    if (isRead) this.#use(there)
  }

  async #bringAway(there: string, away: AwayFile, isRead: boolean): Promise<void> {
    this.#forget(there)
    const own = this.#nameOf(away.id) ?? this.#nameOf(away.stamp ?? away.id)
    let bytes = 0
    if (own === undefined || !(await this.#copied(own, there, isRead))) {
      bytes = await this.#pull(there, away)
    }
    // What is to be changed is a copy of it no more.
    if (!isRead) return
    this.#note(there, away.stamp ?? away.id, bytes, away.stamp === null ? away : null)
    away.has(this, there)
  }

  /** Whether what is there already could be copied. */
  async #copied(from: string, to: string, isRead: boolean): Promise<boolean> {
    try {
      await this.#ask({ op: 'make', clear: [], folders: [], copies: [{ from, to, isRead }] })
      return true
    } catch (error) {
      if (error instanceof NodeLost) throw error
      this.#forget(from)
      return false
    }
  }

  /** Gets it from another node: directly, or by way of this machine. Returns its bytes. */
  async #pull(there: string, away: AwayFile): Promise<number> {
    for (let found = away.source(this); found; found = away.source(this)) {
      const [from, path] = found as [NodeFolder, string]
      if (this.#unreachable.has(from) || from.#link.peers.length === 0) break
      from.serving++
      try {
        const number = -++this.#lastStream
        const { peers: addresses, node } = from.#link
        const order = { op: 'pull', number, path: there, node, addresses, from: path } as const
        const { bytes = 0, free = Infinity, isMissing, isUnreachable } = await this.#ask(order)
        if (isUnreachable && !from.isLost) this.#unreachable.add(from)
        if (isMissing) away.gone(from, path)
        if (isUnreachable || isMissing) continue
        this.#free = free
        this.#keepRoom()
        return bytes
      } finally {
        from.serving--
      }
    }
    const relay = await away.relayed()
    try {
      return await this.#send(relay, there)
    } finally {
      await rm(relay, { recursive: true, force: true })
    }
  }

  letGo(files: readonly ApartFile[]): void {
    this.#waiting.delete(files)
    this.#writing.delete(files)
    for (const { path, use } of files) {
      const there = this.there(path)
      const users = use === 'read' ? this.#byName.get(there)?.users : undefined
      users?.set(there, Math.max(0, (users.get(there) ?? 0) - 1))
      if (use === 'join') this.#joined.set(there, Math.max(0, (this.#joined.get(there) ?? 0) - 1))
    }
  }

  /** Makes sure that the node has what is at the path now. */
  bring(path: string, isUsed = false): Promise<void> {
    const there = this.there(path)
    return this.#inTurn(there, async () => {
      const stamp = await stampOf(path)
      if (stamp === null) throw new MillraceError('MR_INPUT_MISSING', `${path} does not exist`)
      if (this.#byName.get(there)?.stamp !== stamp) await this.#renew(path, there, stamp)
      this.#use(there, isUsed ? 1 : 0)
    })
  }

  #use(there: string, users = 1): void {
    const copied = this.#byName.get(there)
    if (!copied) return
    copied.users.set(there, (copied.users.get(there) ?? 0) + users)
    this.#copies.delete(copied.stamp)
    this.#copies.set(copied.stamp, copied)
  }

  async #renew(path: string, there: string, stamp: string): Promise<void> {
    // What was made there was brought to its place here since.
    const from = this.#nameOf(stamp)
    const bytes = from === undefined ? await this.#send(path, there) : 0
    if (from !== undefined) await this.#copy(path, from, there, true)
    // It may have changed after it was looked at, and before it was read.
    if ((await stampOf(path)) !== stamp) throw changed(path)
    this.#note(there, stamp, bytes)
  }

  /** From what is there already; a task may have removed it meanwhile, and then it is sent. */
  async #copy(path: string, from: string, to: string, isRead: boolean): Promise<void> {
    if (!(await this.#copied(from, to, isRead))) await this.#send(path, to)
  }

  /** Returns its bytes. */
  async #send(path: string, there: string): Promise<number> {
    const number = ++this.#lastStream
    const stored = this.#ask({ op: 'put', number, path: there })
    this.#link.outgoing.sendStream(number, readTree(path))
    const { bytes = 0, free = Infinity } = await stored
    this.#free = free
    this.#keepRoom()
    return bytes
  }

  /**
   * What is kept there takes at most as much as is free, and leaves room for so much more. What is also elsewhere goes; where that is
   * not enough, what is nowhere else comes here. What was used least lately is first.
   */
  #keepRoom(more = 0): void {
    let over = Math.max((this.#bytes - this.#free) / 2, more - this.#free)
    const clear: string[] = []
    const only: Copied[] = []
    for (const copied of this.#copies.values()) {
      if (over <= 0) break
      const { bytes, away, users } = copied
      if (bytes === 0 || [...users].some(([there, count]) => count > 0 || this.#busy.has(there))) continue
      if (away?.mayForget(this) === false) {
        only.push(copied)
        continue
      }
      clear.push(...users.keys())
      over -= bytes
    }
    this.#remove(clear)
    for (const copied of only) {
      if (over <= 0) break
      over -= copied.bytes
      this.#bringSoon(copied)
    }
  }

  #bringSoon(copied: Copied): void {
    const coming = copied.isAsked ? undefined : copied.away?.bringSoon?.()
    if (!coming) return
    copied.isAsked = true
    const ended = coming.catch(() => undefined).finally(() => this.#coming.delete(ended))
    this.#coming.add(ended)
  }

  /** Resolves when there is room for what one more attempt writes, or when nothing more makes room. */
  async #waitForRoom(files: readonly ApartFile[]): Promise<void> {
    if (files.every(({ use }) => use === 'read')) return
    this.#waiting.add(files)
    for (;;) {
      const more = (this.#writing.size + 1) * this.#most
      this.#keepRoom(more)
      if (more <= this.#free || this.#coming.size === 0) break
      await Promise.race(this.#coming)
    }
    // An attempt may have ended meanwhile.
    if (this.#waiting.delete(files)) this.#writing.add(files)
  }

  #nameOf(stamp: string): string | undefined {
    return this.#copies.get(stamp)?.users.keys().next().value
  }

  async #knownAt(path: string): Promise<string | null> {
    const stamp = await stampOf(path)
    return (stamp === null ? undefined : this.#nameOf(stamp)) ?? null
  }

  /** One after the other for each path. */
  #inTurn<R>(there: string, action: () => Promise<R>): Promise<R> {
    const before = this.#busy.get(there) ?? Promise.resolve()
    const run = before.then(action)
    const ended = run
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => {
        if (this.#busy.get(there) === ended) this.#busy.delete(there)
      })
    this.#busy.set(there, ended)
    return run
  }

  #note(there: string, stamp: string, bytes = 0, away: AwayFile | null = null): void {
    const users = this.#byName.get(there)?.users.get(there) ?? 0
    this.#forget(there)
    let copied = this.#copies.get(stamp)
    if (!copied) {
      this.#copies.set(stamp, (copied = { stamp, bytes, away, users: new Map(), isAsked: false }))
      this.#bytes += bytes
    }
    copied.users.set(there, users)
    this.#byName.set(there, copied)
  }

  #forget(there: string): void {
    const copied = this.#byName.get(there)
    if (!copied) return
    const { stamp, bytes, away, users } = copied
    this.#byName.delete(there)
    users.delete(there)
    away?.gone(this, there)
    const other = this.#nameOf(stamp)
    if (other !== undefined) return away?.has(this, other)
    this.#copies.delete(stamp)
    this.#bytes -= bytes
  }

  // --- what a task has made there ---

  async take(files: readonly ApartFile[]): Promise<void> {
    const made = files.filter(({ use }) => use !== 'read')
    const sizes = await Promise.all(
      made.map(async ({ path, use }) => {
        const bytes = await this.#fetch(path, use === 'join')
        if (bytes === null) await rm(path, { recursive: true, force: true })
        const stamp = bytes === null || use === 'join' ? null : await stampOf(path)
        if (stamp !== null) this.#note(this.there(path), stamp, bytes ?? 0)
        return bytes ?? 0
      }),
    )
    this.#most = Math.max(this.#most, sum(sizes))
    this.#keepRoom()
  }

  async look(files: readonly ApartFile[]): Promise<readonly number[] | null> {
    const paths = files.map(({ path }) => this.there(path))
    const { sizes = [], free = Infinity } = await this.#ask({ op: 'look', paths })
    this.#free = free
    if (!sizes.every(size => size !== null)) return null
    this.#most = Math.max(this.#most, sum(sizes))
    return sizes
  }

  leave({ path }: ApartFile, bytes: number): Away {
    const there = this.there(path)
    const away = new AwayFile(this, there, bytes, path)
    this.#note(there, away.id, bytes, away)
    return away
  }

  fetchTo(there: string, path: string): Promise<boolean> {
    return this.#fetchFrom(there, false, path).then(bytes => bytes !== null)
  }

  cameHome(away: AwayFile, stamp: string): void {
    const copied = this.#copies.get(away.id)
    if (!copied) return
    this.#copies.delete(away.id)
    this.#copies.set(stamp, Object.assign(copied, { stamp, away: null }))
  }

  clear(away: AwayFile): void {
    this.#remove([...(this.#copies.get(away.id)?.users.keys() ?? [])])
  }

  #remove(clear: readonly string[]): void {
    if (clear.length === 0) return
    const before = this.#bytes
    for (const there of clear) this.#forget(there)
    this.#free += before - this.#bytes
    const cleared = this.#ask({ op: 'make', clear, folders: [], copies: [] }).catch(() => undefined)
    // What is to come to these paths comes behind it.
    for (const there of clear) void this.#inTurn(there, () => cleared)
  }

  drop(files: readonly ApartFile[]): void {
    const clear = files
      .filter(({ use }) => use === 'write' || use === 'change')
      .map(({ path }) => this.there(path))
    this.#remove(clear)
  }

  async fetch(path: string): Promise<void> {
    await this.#fetch(path, true)
  }

  /** Brings what is in a folder there to the same folder here, beside what is here; files here are kept. */
  async gather(folder: string): Promise<void> {
    const aside = join(dirname(folder), `.${basename(folder)}-${basename(this.root)}`)
    try {
      if ((await this.#fetch(folder, true, aside)) === null) return
      await mkdir(folder, { recursive: true })
      for (const name of await readdir(aside)) await rename(join(aside, name), join(folder, name))
    } finally {
      await rm(aside, { recursive: true, force: true })
    }
  }

  /** Returns the bytes that came; null when nothing is there. */
  #fetch(path: string, mayChange: boolean, to = path): Promise<number | null> {
    return this.#fetchFrom(this.there(path), mayChange, to)
  }

  async #fetchFrom(there: string, mayChange: boolean, to: string): Promise<number | null> {
    const number = ++this.#lastStream
    const { isMissing, free = Infinity } = await this.#ask({ op: 'get', number, path: there, mayChange })
    if (isMissing) return null
    this.#free = free
    return this.#link.incoming.trees.expect(number, to).catch((error: unknown) => {
      const { syscall, message } = error as NodeJS.ErrnoException
      if (syscall === undefined) throw error
      const text = `${atHome(to)} could not be brought from node ${this.#link.name}: ${atHome(message)}`
      throw new MillraceError('MR_TRANSFER', text, { cause: error })
    })
  }

  /** Sends the program, unless the node has kept it from an earlier run. */
  async sendProgram(parcel: Parcel, hash: string): Promise<void> {
    const number = ++this.#lastStream
    const { isMissing } = await this.#ask({ op: 'program', hash, number })
    if (isMissing) this.#link.outgoing.sendStream(number, readParcel(parcel))
  }

  // --- the link ---

  #ask(order: FileOrder): Promise<FileAnswer> {
    if (this.isLost) return Promise.reject(new NodeLost())
    const id = ++this.#lastOrder
    const { writer } = this.#link
    writer.begin(TO_AGENT.file)
    writer.varint(id)
    writer.block(pack(order).bytes)
    writer.end()
    this.#link.flushSoon()
    return new Promise((resolve, reject) => this.#asked.set(id, { resolve, reject }))
  }

  answered(answer: FileAnswer): void {
    const asked = this.#asked.get(answer.id)
    this.#asked.delete(answer.id)
    if (answer.error === undefined) asked?.resolve(answer)
    else asked?.reject(new MillraceError('MR_TRANSFER', `node ${this.#link.name}: ${answer.error}`))
  }

  /** The node is gone with all that it had. */
  cutOff(): void {
    this.isLost = true
    const error = new NodeLost()
    for (const { reject } of this.#asked.values()) reject(error)
    this.#asked.clear()
    this.#link.incoming.trees.cutOff(error)
  }
}

const changed = (path: string): MillraceError =>
  new MillraceError('MR_TRANSFER', `${path} was changed while it was being sent`)

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0)
