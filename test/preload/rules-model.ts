// What the rules promise, written down once more and as simply as possible: files are lists of bytes, descriptions have
// a position, and a governed name has a record that says how much of it consumers may see. What is done to a file counts
// for all its names. One step of two programs makes `f*`, `g*` and the directory `d` with what lies in it; `t*` and the
// directory `e` belong to no step. What consumers see is in rules-seen.ts.
import { governed, ruleOf, type Rule, type Rules } from './play-rules.ts'

type Inode = { bytes: number[] }
type State = 'absent' | 'growing' | 'committed' | 'failed'
export type Known = {
  name: string
  rule: Rule
  state: State
  closes: number
  generation: number
  seen: Set<number>
  /** Closes by programs that failed, of an instance that may yet say that all is well. */
  doubts: number
  doubted: Instance | undefined
}
type Description = {
  inode: Inode
  at: number
  append: boolean
  refs: number
  writes: boolean
}
type Program = { slots: Map<number, Description>; instance: Instance; root: boolean }
type Instance = { live: number; status: number }
export type Folder = { path: 'd' | 'e' | undefined }
export type Reader = { inode: Inode; name: string; at: number; generation: number; plain: boolean }

export const ENOENT = -2
export const EIO = -5
const EEXIST = -17
const ENOTEMPTY = -39

const UNKNOWN = { state: 'absent' as State, closes: 0, generation: 0, doubts: 0, doubted: undefined }

export class Model {
  protected readonly rules: Rules
  readonly names = new Map<string, Inode>()
  readonly folders = new Map<string, Folder>([['d', { path: 'd' }]])
  readonly known = new Map<string, Known>()
  readonly programs = new Map<string, Program>()
  readonly #all = new Set<Description>()
  #running: number
  #ended = 0
  #failed = 0
  readonly #expected: number

  constructor(rules: Rules, roots: string[]) {
    this.rules = rules
    this.#running = this.#expected = roots.length
    for (const root of roots)
      this.programs.set(root, { slots: new Map(), instance: { live: 1, status: 137 }, root: true })
  }

  record(name: string): Known {
    let known = this.known.get(name)
    if (known) return known
    if (name.startsWith('d/')) this.record('d')
    known = { ...UNKNOWN, name, rule: ruleOf(this.rules, name), seen: new Set() }
    this.known.set(name, known)
    return known
  }

  /** The records of all names of a file that rules know. */
  #of(inode: Inode): Known[] {
    return [...this.names]
      .filter(([name, file]) => file === inode && governed(name))
      .map(([name]) => this.record(name))
  }

  #isPlaceFor(path: string): boolean {
    return !path.includes('/') || this.folders.has(path.slice(0, 1))
  }

  #cut(known: Known, size: number): void {
    const taken = [...known.seen].filter(at => at >= size)
    if (taken.length > 0) known.generation++
    for (const at of taken) known.seen.delete(at)
  }

  #publish(known: Known, from: number, to: number): void {
    if (known.state !== 'growing' || !known.rule.growing) return
    for (let at = from; at < to; at++) known.seen.add(at)
  }

  /** A directory may be complete with what happens to a file in it. */
  #turn(known: Known, state: State): void {
    known.state = state
    if (known.name.startsWith('d/') && this.rules.d.commit.kind === 'on_n_files')
      this.evaluate(this.record('d'))
  }

  #isDone({ rule: { commit, growing } }: Known, over: boolean, failed: boolean, closes: number): boolean {
    if (commit.kind === 'on_close') return closes >= commit.count
    if (commit.kind === 'on_file') return commit.deps.every(name => this.record(name).state === 'committed')
    if (commit.kind === 'on_termination')
      return !failed && (commit.count > 0 ? this.#ended >= commit.count || over : over)
    const children = [...this.known.values()].filter(child => child.name.startsWith('d/'))
    return (
      children.filter(child => (growing ? child.state !== 'absent' : child.state === 'committed')).length >=
      commit.count
    )
  }

  protected evaluate(known: Known): void {
    if (known.state === 'committed' || known.state === 'failed') return
    const { commit } = known.rule
    const over = this.#running === 0 && this.#ended + this.#failed >= this.#expected
    const failed = this.#running === 0 && this.#failed > 0
    const deps = commit.kind === 'on_file' ? commit.deps.map(name => this.record(name)) : []
    for (const dep of deps) {
      this.evaluate(dep)
      if (dep.state !== 'committed') break
    }
    const done = this.#isDone(known, over, failed, known.closes)
    const first = deps.find(dep => dep.state !== 'committed')
    if (done) this.#turn(known, 'committed')
    else if (failed || first?.state === 'failed') this.#turn(known, 'failed')
    else if (over && commit.kind !== 'on_file') this.#turn(known, 'committed')
  }

  // ---- what producers do

  open(program: string, slot: number, path: string, how: string): number {
    let inode = this.names.get(path)
    if (how === 'x' && inode) return EEXIST
    if (how === 'w' && inode) for (const known of this.#of(inode)) this.#cutOpen(known, 0)
    if (!this.#isPlaceFor(path)) return ENOENT
    if (!inode) {
      inode = { bytes: [] }
      if (how === 'w' && governed(path)) this.#cutOpen(this.record(path), 0)
      this.names.set(path, inode)
    }
    if (how === 'w') inode.bytes.length = 0
    for (const known of this.#of(inode)) this.#begun(known, inode, how === 'w')
    const made = { inode, at: 0, append: how === 'a', refs: 1, writes: how !== 'r' }
    this.#all.add(made)
    this.programs.get(program)!.slots.set(slot, made)
    return 0
  }

  #begun(known: Known, inode: Inode, anew: boolean): void {
    if (known.state === 'failed' && anew) {
      known.closes = known.doubts = 0
      this.#cut(known, 0)
      known.state = 'absent'
    }
    if (known.state !== 'absent') return
    known.seen.clear()
    this.#turn(known, 'growing')
    this.#publish(known, 0, inode.bytes.length)
  }

  #put(one: Description, from: number, len: number, mark: number, first: number): void {
    const { bytes } = one.inode
    while (bytes.length < from) bytes.push(0)
    for (let i = 0; i < len; i++) bytes[from + i] = (mark * 31 + (first + i) * 7) & 255
    for (const known of this.#of(one.inode)) this.#publish(known, from, from + len)
  }

  write(program: string, slot: number, len: number, mark: number, count: number): number {
    const one = this.programs.get(program)!.slots.get(slot)!
    for (let part = 0; part < count; part++) {
      const from = one.append ? one.inode.bytes.length : one.at
      this.#put(one, from, len, mark, part * len)
      one.at = from + len
    }
    return 0
  }

  pwrite(program: string, slot: number, at: number, len: number, mark: number): number {
    const one = this.programs.get(program)!.slots.get(slot)!
    this.#put(one, one.append ? one.inode.bytes.length : at, len, mark, 0)
    return 0
  }

  seek(program: string, slot: number, to: number): number {
    return (this.programs.get(program)!.slots.get(slot)!.at = to)
  }

  #resize(inode: Inode, size: number): void {
    while (inode.bytes.length < size) inode.bytes.push(0)
    inode.bytes.length = size
  }

  #cutOpen(known: Known, size: number): void {
    if (known.state === 'absent' || known.state === 'growing') this.#cut(known, size)
  }

  #cutTo(inode: Inode, size: number): number {
    for (const known of this.#of(inode)) this.#cutOpen(known, size)
    this.#resize(inode, size)
    return 0
  }

  ftruncate(program: string, slot: number, size: number): number {
    return this.#cutTo(this.programs.get(program)!.slots.get(slot)!.inode, size)
  }

  truncate(path: string, size: number): number {
    const inode = this.names.get(path)
    return inode ? this.#cutTo(inode, size) : ENOENT
  }

  dup(program: string, slot: number, to: number): number {
    const { slots } = this.programs.get(program)!
    const one = slots.get(slot)!
    one.refs++
    slots.set(to, one)
    return 0
  }

  #close(one: Description, badly: boolean, doubted?: Instance): void {
    if (--one.refs > 0) return
    this.#all.delete(one)
    for (const known of this.#of(one.inode)) this.#closeName(known, badly, doubted)
  }

  #closeName(known: Known, badly: boolean, doubted?: Instance): void {
    if (doubted) {
      known.doubts = known.doubted === doubted ? known.doubts + 1 : 1
      known.doubted = doubted
      return
    }
    if (!badly) known.closes++
    else if (known.rule.commit.kind === 'on_close' && known.state !== 'committed') this.#turn(known, 'failed')
    if (!badly) this.evaluate(known)
  }

  /** `to` is open as well, and becomes another descriptor of what `slot` is. */
  dupOnto(program: string, slot: number, to: number): number {
    this.close(program, to)
    return this.dup(program, slot, to)
  }

  close(program: string, slot: number): number {
    const { slots } = this.programs.get(program)!
    const one = slots.get(slot)!
    slots.delete(slot)
    this.#close(one, false)
    return 0
  }

  /** A name has come to be, by rename or link. */
  #appeared(name: string): void {
    if (!governed(name)) return
    const known = this.record(name)
    const inode = this.names.get(name)!
    if (known.state === 'absent') this.#turn(known, 'growing')
    this.#publish(known, 0, inode.bytes.length)
    if (![...this.#all].some(one => one.inode === inode && one.writes)) known.closes++
    this.evaluate(known)
  }

  #vanished(name: string): void {
    const known = this.known.get(name)
    if (!known || !governed(name)) return
    if (known.state !== 'committed') known.generation++
    if (known.state !== 'growing') return
    known.seen.clear()
    known.state = 'absent'
  }

  /** Another file is about to take this name. */
  #taken(name: string): void {
    const known = this.known.get(name)
    if (!known || !governed(name)) return
    if (known.state !== 'committed') known.generation++
    if (known.state === 'growing') known.seen.clear()
  }

  rename(from: string, to: string): number {
    const inode = this.names.get(from)
    if (!inode || !this.#isPlaceFor(to)) return ENOENT
    if (this.names.get(to) === inode) return 0
    this.#taken(to)
    this.names.delete(from)
    this.names.set(to, inode)
    this.#appeared(to)
    this.#vanished(from)
    return 0
  }

  exchange(from: string, to: string): number {
    const [a, b] = [this.names.get(from), this.names.get(to)]
    if (!a || !b) return ENOENT
    if (a === b) return 0
    this.#vanished(from)
    this.#vanished(to)
    this.names.set(from, b).set(to, a)
    this.#appeared(from)
    this.#appeared(to)
    return 0
  }

  unlink(path: string): number {
    if (!this.names.delete(path)) return ENOENT
    this.#vanished(path)
    return 0
  }

  link(from: string, to: string): number {
    const inode = this.names.get(from)
    if (!inode || !this.#isPlaceFor(to)) return ENOENT
    if (this.names.has(to)) return EEXIST
    this.names.set(to, inode)
    this.#appeared(to)
    return 0
  }

  // ---- directories

  inside(path: string): string[] {
    return [...this.names.keys()].filter(name => name.startsWith(`${path}/`))
  }

  mkdir(path: 'd' | 'e'): number {
    if (this.folders.has(path)) return EEXIST
    this.#folderAppeared(path, { path })
    return 0
  }

  rmdir(path: 'd' | 'e'): number {
    const folder = this.folders.get(path)
    if (!folder) return ENOENT
    if (this.inside(path).length > 0) return ENOTEMPTY
    this.#folderGone(path, folder)
    return 0
  }

  #folderAppeared(path: 'd' | 'e', folder: Folder): void {
    this.folders.set(path, folder)
    folder.path = path
    const known = this.record('d')
    if (path !== 'd') return
    if (known.state === 'absent') known.state = 'growing'
    this.evaluate(known)
  }

  #folderGone(path: 'd' | 'e', folder: Folder): void {
    this.folders.delete(path)
    folder.path = undefined
    this.#vanished(path)
  }

  renameFolder(from: 'd' | 'e', to: 'd' | 'e'): number {
    const [folder, there] = [this.folders.get(from), this.folders.get(to)]
    if (!folder) return ENOENT
    if (from === to) return 0
    if (this.inside(to).length > 0) return ENOTEMPTY
    if (there) there.path = undefined
    this.#taken(to)
    const moved = this.inside(from).map(name => [name.slice(2), this.names.get(name)!] as const)
    this.folders.delete(from)
    this.#folderAppeared(to, folder)
    this.#vanished(from)
    for (const [name, inode] of moved) {
      this.names.delete(`${from}/${name}`)
      this.names.set(`${to}/${name}`, inode)
    }
    for (const [name] of moved) this.#appeared(`${to}/${name}`)
    for (const name of this.known.keys()) if (name.startsWith(`${from}/`)) this.#vanished(name)
    return 0
  }

  fork(program: string, child: string): void {
    const parent = this.programs.get(program)!
    for (const one of parent.slots.values()) one.refs++
    parent.instance.live++
    this.programs.set(child, { slots: new Map(parent.slots), instance: parent.instance, root: false })
  }

  /** status: of exit; 'killed' for SIGKILL. */
  end(program: string, status: number | 'killed'): void {
    const { slots, instance, root } = this.programs.get(program)!
    this.programs.delete(program)
    const badly = status === 'killed' || (root && status !== 0)
    const doubted = !badly && status !== 0 ? instance : undefined
    for (const one of slots.values()) this.#close(one, badly, doubted)
    if (root) instance.status = status === 'killed' ? 137 : status
    if (--instance.live > 0) return
    this.#running--
    if (instance.status === 0) this.#ended++
    else this.#failed++
    for (const known of this.known.values()) {
      if (known.doubted !== instance) continue
      if (instance.status === 0) known.closes += known.doubts
      else if (known.doubts > 0 && known.rule.commit.kind === 'on_close' && known.state !== 'committed')
        this.#turn(known, 'failed')
      known.doubts = 0
    }
    for (const known of this.known.values()) this.evaluate(known)
  }
}
