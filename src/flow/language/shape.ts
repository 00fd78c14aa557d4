import { MillraceError } from '../../core/errors.ts'
import { Marked } from './marks.ts'
import type { FileSpec } from './marks.ts'

/** How files are written down in a rule: one, a list, or a record; lists and records may hold lists. */
export type FileShape =
  | FileSpec
  | readonly (FileSpec | readonly FileSpec[])[]
  | { readonly [name: string]: FileSpec | readonly FileSpec[] }

interface Item {
  readonly key: string | number
  /** The number of files of a list inside; -1 for a single file. */
  readonly length: number
}

/** The form of files without the files: turns a flat list of paths back into what the rule's function expects. */
export class Shape {
  readonly #form: 'one' | 'list' | 'record'
  readonly #items: readonly Item[]

  constructor(form: 'one' | 'list' | 'record', items: readonly Item[]) {
    this.#form = form
    this.#items = items
  }

  build(paths: readonly (string | undefined)[]): unknown {
    if (this.#form === 'one') return paths[0]
    const built: Record<string | number, unknown> = this.#form === 'list' ? ([] as never) : {}
    let next = 0
    for (const { key, length } of this.#items) {
      if (length < 0) built[key] = paths[next++]
      else {
        built[key] = paths.slice(next, next + length).filter(path => path !== undefined)
        next += length
      }
    }
    return built
  }
}

const ONE = new Shape('one', [])

/** The files in order, and how to put them together again. */
export function flatten(what: string, given: unknown): { files: FileSpec[]; shape: Shape } {
  if (isFile(given)) return { files: [given], shape: ONE }
  if (typeof given !== 'object' || given === null) {
    throw new MillraceError('MR_FLOW_RULE', `${what} are ${given === null ? 'null' : typeof given}`, {
      hint: 'Write a path, a list of paths, or a record of paths.',
    })
  }
  const files: FileSpec[] = []
  const items: Item[] = []
  const isList = Array.isArray(given)
  for (const [name, item] of Object.entries(given)) {
    const key = isList ? Number(name) : name
    if (Array.isArray(item)) {
      for (const one of item as unknown[]) files.push(checkFile(what, one))
      items.push({ key, length: item.length })
    } else {
      files.push(checkFile(what, item))
      items.push({ key, length: -1 })
    }
  }
  return { files, shape: new Shape(isList ? 'list' : 'record', items) }
}

const isFile = (value: unknown): value is FileSpec => typeof value === 'string' || value instanceof Marked

function checkFile(what: string, value: unknown): FileSpec {
  if (isFile(value)) return value
  throw new MillraceError('MR_FLOW_RULE', `${what}: ${String(value)} is not a path`, {
    hint: 'Write a path, a list of paths, or a record of paths.',
  })
}
