// What the rules promise, written down once more and as simply as possible: files are lists of bytes, descriptions have
// a position, and a governed name has a record that says how much of it consumers may see. One step of two programs
// makes `f*`, `g*` and the directory `d` with what lies in it; `t*` is nobody's business.
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
  name: string | undefined
  at: number
  append: boolean
  refs: number
  writes: boolean
}
type Program = { slots: Map<number, Description>; instance: Instance; root: boolean }
type Instance = { live: number; status: number }
type Reader = { inode: Inode; name: string; at: number; generation: number; plain: boolean }

const ENOENT = -2
const EIO = -5
const EEXIST = -17

const UNKNOWN = { state: 'absent' as State, closes: 0, generation: 0, doubts: 0, doubted: undefined }

export class Model {
  readonly #rules: Rules
  readonly names = new Map<string, Inode>()
  readonly known = new Map<string, Known>()
  readonly programs = new Map<string, Program>()
  readonly #all = new Set<Description>()
  #running: number
  #ended = 0
  #failed = 0
  readonly #expected: number

  constructor(rules: Rules, roots: string[]) {
    this.#rules = rules
    this.#running = this.#expected = roots.length
    for (const root of roots)
      this.programs.set(root, { slots: new Map(), instance: { live: 1, status: 137 }, root: true })
  }

  record(name: string): Known {
    let known = this.known.get(name)
    if (known) return known
    if (name.startsWith('d/')) this.record('d')
    known = { ...UNKNOWN, name, rule: ruleOf(this.#rules, name), seen: new Set() }
    this.known.set(name, known)
    return known
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
    if (known.name.startsWith('d/') && this.#rules.d.commit.kind === 'on_n_files')
      this.#evaluate(this.record('d'))
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

  #evaluate(known: Known): void {
    if (known.state === 'committed' || known.state === 'failed') return
    const { commit } = known.rule
    const over = this.#running === 0 && this.#ended + this.#failed >= this.#expected
    const failed = this.#running === 0 && this.#failed > 0
    const deps = commit.kind === 'on_file' ? commit.deps.map(name => this.record(name)) : []
    for (const dep of deps) {
      this.#evaluate(dep)
      if (dep.state !== 'committed') break
    }
    const done = this.#isDone(known, over, failed, known.closes)
    const first = deps.find(dep => dep.state !== 'committed')
    if (done) this.#turn(known, 'committed')
    else if (failed || first?.state === 'failed') this.#turn(known, 'failed')
    else if (over && commit.kind !== 'on_file') this.#turn(known, 'committed')
  }

  #detach(name: string): void {
    const known = this.record(name)
    if (known.state !== 'committed') known.generation++
    for (const one of this.#all) if (one.name === name) one.name = undefined
  }

  // ---- what producers do

  open(program: string, slot: number, path: string, how: string): number {
    let inode = this.names.get(path)
    if (how === 'x' && inode) return EEXIST
    const known = governed(path) ? this.record(path) : undefined
    if (known && how === 'w' && known.state !== 'committed' && known.state !== 'failed') this.#cut(known, 0)
    if (!inode) this.names.set(path, (inode = { bytes: [] }))
    if (how === 'w') inode.bytes.length = 0
    if (known?.state === 'failed' && how === 'w') {
      known.closes = 0
      this.#cut(known, 0)
      known.state = 'absent'
    }
    if (known?.state === 'absent') {
      known.seen.clear()
      this.#turn(known, 'growing')
      this.#publish(known, 0, inode.bytes.length)
    }
    const name = known ? path : undefined
    const made = { inode, name, at: 0, append: how === 'a', refs: 1, writes: how !== 'r' }
    this.#all.add(made)
    this.programs.get(program)!.slots.set(slot, made)
    return 0
  }

  #put(one: Description, from: number, len: number, mark: number, first: number): void {
    const { bytes } = one.inode
    while (bytes.length < from) bytes.push(0)
    for (let i = 0; i < len; i++) bytes[from + i] = (mark * 31 + (first + i) * 7) & 255
    if (one.name !== undefined) this.#publish(this.record(one.name), from, from + len)
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

  #cutRecord(name: string | undefined, size: number): void {
    const known = name === undefined ? undefined : this.known.get(name)
    if (known && (known.state === 'absent' || known.state === 'growing')) this.#cut(known, size)
  }

  ftruncate(program: string, slot: number, size: number): number {
    const one = this.programs.get(program)!.slots.get(slot)!
    this.#cutRecord(one.name, size)
    this.#resize(one.inode, size)
    return 0
  }

  truncate(path: string, size: number): number {
    const inode = this.names.get(path)
    if (!inode) return ENOENT
    if (governed(path)) this.#cutRecord(path, size)
    this.#resize(inode, size)
    return 0
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
    if (one.name === undefined) return
    const known = this.record(one.name)
    if (doubted) {
      known.doubts = known.doubted === doubted ? known.doubts + 1 : 1
      known.doubted = doubted
      return
    }
    if (!badly) known.closes++
    else if (known.rule.commit.kind === 'on_close' && known.state !== 'committed') this.#turn(known, 'failed')
    if (!badly) this.#evaluate(known)
  }

  close(program: string, slot: number): number {
    const { slots } = this.programs.get(program)!
    const one = slots.get(slot)!
    slots.delete(slot)
    this.#close(one, false)
    return 0
  }

  /** A governed name has come to be, by rename or link. */
  #appeared(name: string): void {
    const known = this.record(name)
    const inode = this.names.get(name)!
    for (const one of this.#all)
      if (one.inode === inode && one.name === undefined && one.writes) one.name = name
    if (known.state === 'absent' || known.state === 'growing') {
      if (known.state === 'absent') this.#turn(known, 'growing')
      this.#publish(known, 0, inode.bytes.length)
    }
    if (![...this.#all].some(one => one.inode === inode && one.writes)) known.closes++
    this.#evaluate(known)
  }

  #vanished(name: string): void {
    const known = this.known.get(name)
    if (!known) return
    this.#detach(name)
    if (known.state !== 'growing') return
    known.seen.clear()
    known.state = 'absent'
  }

  rename(from: string, to: string): number {
    const inode = this.names.get(from)
    if (!inode) return ENOENT
    if (this.names.get(to) === inode) return 0
    if (governed(to) && this.known.has(to)) {
      this.#detach(to)
      const known = this.record(to)
      if (known.state === 'growing') known.seen.clear()
    }
    this.names.delete(from)
    this.names.set(to, inode)
    for (const one of this.#all)
      if (one.inode === inode && one.name === from) one.name = governed(to) ? to : undefined
    if (governed(to)) this.#appeared(to)
    if (governed(from)) this.#vanished(from)
    return 0
  }

  unlink(path: string): number {
    if (!this.names.delete(path)) return ENOENT
    if (governed(path)) this.#vanished(path)
    return 0
  }

  link(from: string, to: string): number {
    const inode = this.names.get(from)
    if (!inode) return ENOENT
    if (this.names.has(to)) return EEXIST
    this.names.set(to, inode)
    if (governed(to)) this.#appeared(to)
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
    for (const known of this.known.values()) this.#evaluate(known)
  }

  // ---- what consumers see: undefined while they must wait

  openToRead(path: string): Reader | number | undefined {
    const inode = this.names.get(path)
    if (!governed(path)) return inode ? { inode, name: path, at: 0, generation: 0, plain: true } : ENOENT
    const known = this.record(path)
    const begun = (): boolean => known.rule.growing && known.state === 'growing'
    if (!begun()) this.#evaluate(known)
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed' && !begun()) return undefined
    if (!inode) return ENOENT
    return { inode, name: path, at: 0, generation: known.generation, plain: known.state === 'committed' }
  }

  /** Bytes at an offset, or at the position. What was taken back is found out before the wait, and after it. */
  read(reader: Reader, len: number, waits: boolean, offset?: number): number[] | number | undefined {
    const from = offset ?? reader.at
    const known = reader.plain ? undefined : this.record(reader.name)
    if (known) {
      if (!waits && this.#outdated(reader, known)) return EIO
      const isThere = Array.from({ length: len }, (_, i) => from + i).every(at => known.seen.has(at))
      if (!isThere) this.#evaluate(known)
      if (known.state === 'failed') return EIO
      if (known.state !== 'committed' && !isThere) return undefined
      if (this.#outdated(reader, known)) return EIO
      if (known.state === 'committed') reader.plain = true
    }
    const bytes = reader.inode.bytes.slice(from, from + len)
    if (offset === undefined) reader.at += bytes.length
    return bytes
  }

  #outdated(reader: Reader, known: Known): boolean {
    if (reader.generation === known.generation) return false
    if (this.names.get(reader.name) !== reader.inode || reader.at !== 0) return true
    reader.generation = known.generation
    return false
  }

  /** 0: the file is complete; undefined: its reader has to wait for that. */
  #end(reader: Reader): number | undefined {
    if (reader.plain) return 0
    const known = this.record(reader.name)
    this.#evaluate(known)
    return known.state === 'failed' ? EIO : known.state === 'committed' ? 0 : undefined
  }

  seekEnd(reader: Reader): number | undefined {
    const end = this.#end(reader)
    return end === 0 ? (reader.at = reader.inode.bytes.length) : end
  }

  /** All of it through a mapping, which has to be complete. */
  map(reader: Reader): number[] | number | undefined {
    const end = this.#end(reader)
    if (end !== 0) return end
    return !reader.plain && this.#outdated(reader, this.record(reader.name)) ? EIO : reader.inode.bytes
  }

  /** The names in the directory, when it is complete. */
  list(): number[] | number | undefined {
    const known = this.record('d')
    this.#evaluate(known)
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed') return undefined
    const names = [...this.names.keys()].filter(name => name.startsWith('d/')).map(name => name.slice(2))
    return [
      ...Buffer.from(
        names
          .sort()
          .map(name => `${name} `)
          .join(''),
      ),
    ]
  }

  size(path: string): number | undefined {
    const inode = this.names.get(path)
    if (!governed(path)) return inode ? inode.bytes.length : ENOENT
    const known = this.record(path)
    this.#evaluate(known)
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed') return undefined
    return inode ? inode.bytes.length : ENOENT
  }
}

export type { Reader }
