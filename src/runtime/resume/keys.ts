import { randomBytes } from 'node:crypto'
import { relative, resolve } from 'node:path'
import { serialize } from 'node:v8'
import type { Access, Version } from '../../core/data/datum.ts'
import { pathIn } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { SlotArgument } from '../../model/capture/call.ts'
import type { Argument, KeptSlot } from '../../model/capture/call.ts'
import { modulePath, taskModules } from '../../model/definition.ts'
import type { Definition } from '../../model/definition.ts'
import { Stored } from '../../model/encoding/stored.ts'
import { jobOf } from '../../node/job.ts'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { KEY_BYTES, STORE_VERSION } from '../../store/format.ts'
import type { CodeDigests } from './code.ts'
import { modulesOf } from './modules-of.ts'
import { digestOfKept, textOf } from './kept-values.ts'
import { roomFor } from './room.ts'
import type { ValueDigest } from './kept-values.ts'

/** What the results of a task are found by, and what that is made of. */
export interface Keyed {
  readonly key: Digest
  readonly kind: Digest
  readonly code: Digest
  /** The text of the arguments; `argsDigest` is what is written. */
  readonly args: string
  readonly inputs: readonly Digest[]
}

/** What tells arguments apart for `--explain`: a short text as it is, with zeros behind it. */
export function argsDigest({ args }: Keyed): Digest {
  if (args.length > KEY_BYTES) return digestOf(args)
  const plain = roomFor(KEY_BYTES)
  for (let i = 0; i < KEY_BYTES; i++) {
    const code = i < args.length ? args.charCodeAt(i) : 0
    if (code > 127) return digestOf(args)
    plain[i] = code
  }
  return plain
}

export interface KeyOptions {
  readonly code: CodeDigests
  /** The folder that paths are relative to. */
  readonly root: string
  /** Of Millrace: what it makes of a call may differ. */
  readonly version: string
  /** Counts in every key. */
  readonly salt: string
  program(name: string): Digest
  /** The words of a command, where it runs, and what it adds to the environment; nothing for other tasks. */
  lineOf(task: Task): string
  /** What is in a version; null when that cannot be known. `isTaken`: the task writes over it. */
  digestOf(version: Version, isTaken: boolean): ValueDigest | Promise<ValueDigest | null> | null
}

/** What all tasks of a definition have in common. */
interface Prefix {
  readonly kind: Digest
  readonly code: Digest
  readonly text: string
}

/**
 * Keys of tasks. A key is made of all that a result can depend on: the definition, the code behind it, the arguments, what
 * is in the inputs, and the paths of files. Where an input was made by a task whose result is kept, its digest is known.
 */
export class Keys {
  readonly #options: KeyOptions
  readonly #prefixes = new Map<Definition, Prefix>()
  #classes: string | null = null

  constructor(options: KeyOptions) {
    this.#options = options
  }

  /**
   * What the task is given, before it begins to change it. Null when an input cannot be known by what is in it.
   * `isStarting`: it begins right after.
   */
  inputsOf(task: Task, isStarting: boolean): Inputs | Promise<Inputs | null> | null {
    const { slots } = jobOf(task)
    const digests: (ValueDigest | null | Promise<ValueDigest | null>)[] = []
    let isLate = false
    for (let i = 0; i < slots.length; i++) {
      const { read, write } = task.accesses[i] as Access
      const { initial } = slots[i] as KeptSlot
      if (initial && digestOfKept(initial) instanceof Promise) return null
      if (!read) continue
      const digest = this.#options.digestOf(read, isStarting && write !== null)
      if (digest === null) return null
      if (digest instanceof Promise) isLate = true
      digests.push(digest)
    }
    const args = this.#args(task)
    if (args instanceof Promise || isLate)
      return Promise.all([args, ...digests]).then(([text, ...known]) =>
        known.includes(null) ? null : { args: text, digests: known as ValueDigest[] },
      )
    return { args, digests: digests as ValueDigest[] }
  }

  /** The text of the arguments; what is in slots comes apart. */
  #args(task: Task): ArgumentText | Promise<ArgumentText> {
    const { args } = jobOf(task)
    let text = this.#options.lineOf(task)
    let hasClasses = false
    const late: Promise<ValueDigest>[] = []
    for (const argument of args) {
      if (!(argument instanceof Stored)) text += `${argumentText(argument)},`
      else {
        const digest = digestOfKept(argument)
        if (digest instanceof Promise) {
          text += `late ${late.length},`
          late.push(digest)
        } else {
          text += `${hexOf(digest.digest)},`
          hasClasses ||= digest.hasClasses
        }
      }
    }
    if (late.length === 0) return { text, hasClasses }
    return Promise.all(late).then(digests => ({
      text: text + digests.map(({ digest }) => hexOf(digest)).join(','),
      hasClasses: hasClasses || digests.some(one => one.hasClasses),
    }))
  }

  /** The key of a task with these inputs; the code behind a definition is looked at with its first key. */
  of(task: Task, extra: string | null, { args, digests }: Inputs): Keyed {
    const { definition, slots } = jobOf(task)
    const { kind, code, text: prefix } = this.#prefix(definition)
    let text = `${prefix}\n${extra ?? ''}\n${args.text}\n`
    let hasClasses = args.hasClasses
    let next = 0
    const inputs: Digest[] = []
    for (let i = 0; i < slots.length; i++) {
      const access = task.accesses[i] as Access
      text += this.#slotText(slots[i] as KeptSlot, access)
      if (!access.read) continue
      const digest = digests[next++] as ValueDigest
      inputs.push(digest.digest)
      text += `${hexOf(digest.digest)},`
      hasClasses ||= digest.hasClasses
    }
    // Methods of an instance are found where its class is defined, which need not be where the task is.
    if (hasClasses)
      text += `classes ${(this.#classes ??= hexOf(this.#options.code.of([...taskModules()]).digest))}`
    return { key: digestOf(text), kind, code, args: args.text, inputs }
  }

  #slotText({ kind, initial, named, holds }: KeptSlot, access: Access): string {
    const path = pathIn(access)
    let text = `${access.mode} ${kind} `
    if (path !== null) text += `${JSON.stringify(this.#shown(named ?? path))} `
    if (holds) text += `${JSON.stringify(holds)} `
    const shape = initial && digestOfKept(initial)
    if (shape && !(shape instanceof Promise)) text += `${hexOf(shape.digest)} `
    return text
  }

  #prefix(definition: Definition): Prefix {
    let prefix = this.#prefixes.get(definition)
    if (!prefix) this.#prefixes.set(definition, (prefix = this.#makePrefix(definition)))
    return prefix
  }

  #makePrefix(definition: Definition): Prefix {
    const { root, version, salt, code: codes, program } = this.#options
    const { digest: code } = codes.of(modulesOf(definition))
    const [, name, count] = /#(.*)#(\d+)$/.exec(definition.key) ?? []
    const id = JSON.stringify([relative(root, modulePath(definition.module)), name, count])
    const programs = (definition.options.programs ?? []).map(one => `${one} ${hexOf(program(one))}`)
    const parts = [STORE_VERSION, version, salt, id, hexOf(code), ...programs, ...this.#defaults(definition)]
    // Its digest, because it is part of each key, and long.
    return { kind: digestOf(id), code, text: hexOf(digestOf(JSON.stringify(parts))) }
  }

  /** What takes the place of results when a failure is ignored need not be written in the module. */
  #defaults({ options: { defaults } }: Definition): string[] {
    if (!defaults) return []
    try {
      const files = Object.values(defaults.params ?? {}).filter(one => typeof one === 'string')
      return [serialize(defaults), ...files.map(path => this.#options.program(resolve(path)))].map(one =>
        hexOf(digestOf(one)),
      )
    } catch {
      // What cannot be looked through never counts as unchanged.
      return [randomBytes(8).toString('hex')]
    }
  }

  /** Paths are the same in a folder that was moved. */
  #shown(path: string): string {
    const within = relative(this.#options.root, path)
    return within.startsWith('..') ? path : within
  }
}

/** Arguments and inputs of a task as they were when it was to begin. */
export interface Inputs {
  readonly args: ArgumentText
  readonly digests: readonly ValueDigest[]
}

interface ArgumentText {
  readonly text: string
  readonly hasClasses: boolean
}

function argumentText(argument: Exclude<Argument, Stored>): string {
  if (!(argument instanceof SlotArgument)) return textOf(argument)
  const { slot, within, part } = argument
  if (part >= 0) return `@${slot}#${part}`
  return within === null ? `@${slot}` : `@${slot}/${JSON.stringify(within)}`
}
