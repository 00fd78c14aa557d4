import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../../node/job.ts'
import type { Definition } from '../../model/definition.ts'
import { digestOf, hexOf, sameDigest } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY } from '../../store/format.ts'
import { firstDifference, isSetting } from './code.ts'
import type { Code, CodeDigests } from './code.ts'
import type { Keeping } from './keeping.ts'
import { argsDigest } from './keys.ts'
import type { Keyed } from './keys.ts'
import { modulesOf } from './modules-of.ts'
import { readHead } from './record.ts'
import type { Stores } from './stores.ts'

/** How often results of a kind were used, and why not. */
interface Counts {
  reused: number
  ran: number
  /** The first that was not reused, and why. */
  first: string | null
  /** Not kept now, by reason. */
  readonly notKept: Map<string, number>
}

type Head = ReturnType<typeof readHead>

/** What `--explain` says: for each kind how many were reused and, for the first that was not, why. */
export class Explanations {
  readonly #stores: Stores
  readonly #code: CodeDigests
  readonly #kinds = new Map<Definition, Counts>()
  /** Code whose sources are to be written, for the next run to compare with. */
  readonly #codes = new Map<string, Code>()
  /** Most tasks have the code of the one before. */
  #last: Digest | null = null
  #before: Map<string, Head> | null = null

  constructor(stores: Stores, code: CodeDigests) {
    this.#stores = stores
    this.#code = code
  }

  reused(task: Task): void {
    this.#counts(task).reused++
  }

  kept(task: Task, code: Digest): void {
    if (code === this.#last) return
    this.#last = code
    const hex = hexOf(code)
    if (!this.#codes.has(hex)) this.#codes.set(hex, this.#code.of(modulesOf(jobOf(task).definition)))
  }

  notKept(task: Task, why: string | null): void {
    if (why === null) return
    const { notKept } = this.#counts(task)
    notKept.set(why, (notKept.get(why) ?? 0) + 1)
  }

  missed(task: Task, keyed: Keyed | null, keeping: Keeping | null): void {
    const counts = this.#counts(task)
    counts.ran++
    counts.first ??= `${task.name}: ${keyed && keeping ? this.#why(task, keyed, keeping) : 'what it reads is not known'}`
  }

  #counts(task: Task): Counts {
    const { definition } = jobOf(task)
    let counts = this.#kinds.get(definition)
    if (!counts)
      this.#kinds.set(definition, (counts = { reused: 0, ran: 0, first: null, notKept: new Map() }))
    return counts
  }

  #why(task: Task, keyed: Keyed, { ordinal }: Keeping): string {
    const before = this.#find(keyed.kind, ordinal)
    if (!before)
      return this.#find(keyed.kind, 0)
        ? 'this call was not kept before'
        : 'no result of its kind was kept before'
    if (!sameDigest(before.code, keyed.code)) return this.#codeChange(before.code, task)
    if (!sameDigest(before.args, argsDigest(keyed))) return 'its arguments changed'
    const at = keyed.inputs.findIndex((input, i) => !before.inputs[i] || !sameDigest(before.inputs[i], input))
    if (at >= 0) return `its input changed: ${inputName(task, at)}`
    return 'its result, or what `key` or `programs` say, is not as it was'
  }

  /** Records of earlier runs by kind and call; those of a kind at all are under call 0. Only built when it is asked for. */
  #find(kind: Digest, ordinal: number): Head | undefined {
    if (!this.#before) {
      this.#before = new Map()
      for (const bytes of this.#stores.results()) {
        const head = readHead(bytes)
        this.#before.set(`${hexOf(head.kind)} ${head.ordinal}`, head)
        this.#before.set(`${hexOf(head.kind)} 0`, head)
      }
    }
    return this.#before.get(`${hexOf(kind)} ${ordinal}`)
  }

  /** Which file of the code differs, and from which line on. */
  #codeChange(before: Digest, task: Task): string {
    const list = this.#stores.find(ENTRY.fact, codeKey(hexOf(before)))
    if (!list) return 'its code changed'
    const old = new Map(JSON.parse(list.toString()) as [path: string, digest: string][])
    for (const { path, digest, text } of this.#code.of(modulesOf(jobOf(task).definition)).sources) {
      const was = old.get(path)
      if (was === digest) continue
      if (isSetting(path)) return `what its code reads changed: ${path}`
      if (was === undefined) return `its code changed: it imports ${path} now`
      const source = text === null ? null : this.#stores.find(ENTRY.fact, textKey(was))
      return `its code changed: ${path}${source && text !== null ? `:${firstDifference(source.toString(), text)}` : ''}`
    }
    return 'its code changed: it imports less than before'
  }

  /** Writes down of what the code of kept tasks consists. */
  writeCode(): void {
    for (const [hex, { sources }] of this.#codes) {
      const key = codeKey(hex)
      if (this.#stores.has(ENTRY.fact, key)) continue
      this.#stores.put(
        ENTRY.fact,
        key,
        Buffer.from(JSON.stringify(sources.map(({ path, digest }) => [path, digest]))),
      )
      for (const { digest, text } of sources)
        if (text !== null && !this.#stores.has(ENTRY.fact, textKey(digest)))
          this.#stores.put(ENTRY.fact, textKey(digest), Buffer.from(text))
    }
    this.#codes.clear()
    this.#last = null
  }

  /** A line per kind. */
  lines(): string[] {
    return [...this.#kinds].map(([{ name }, { reused, ran, first, notKept }]) => {
      const parts = [`${name}: ${reused} reused, ${ran} ran`]
      if (first !== null) parts.push(`first: ${first}`)
      for (const [why, count] of notKept) parts.push(`${count} not kept: ${why}`)
      return parts.join('; ')
    })
  }
}

const codeKey = (hex: string): Digest => digestOf(`code ${hex}`)
const textKey = (hex: string): Digest => digestOf(`text ${hex}`)

/** The path of a file, or the place of a value among those that the task reads. */
function inputName(task: Task, at: number): string {
  const reads = task.accesses.slice(0, jobOf(task).slots.length).filter(({ read }) => read)
  return reads[at]?.read?.datum.path ?? `value ${at + 1} of those that it reads`
}
