import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { compilerSettings, filesBelow, isCode, isFolder, isOwn, packageRoot, readJson } from './code-files.ts'
import { importsOf, readsArguments, variablesIn } from './imports.ts'
import { LANGUAGE, TIME_ZONE, isOfAllocation, languageOf, timeZoneOf } from './surroundings.ts'

/** One file of the code behind a task, or something else that its code reads. */
export interface Source {
  /** As people know it: below the folder of the program where it is there. */
  readonly path: string
  /** Hex. */
  readonly digest: string
  /** Null where only the digest is known. */
  readonly text: string | null
}

/** All that the code of a module can depend on, and one digest for it. */
export interface Code {
  readonly digest: Digest
  readonly sources: readonly Source[]
}

export interface CodeOptions {
  /** Paths are relative to it, so they stay the same when the whole project moves to another folder. */
  readonly root: string
  /** Packages count by what is in them, so that it is the same on another machine; else by names, sizes and times. */
  readonly isShared: boolean
}

interface Read {
  readonly sources: readonly Source[]
  readonly next: readonly string[]
}

/**
 * The code behind tasks: the module that defines it, and what it imports, in turn. It is found by looking at the text, not by
 * running it, and rather counts too much than too little: each text that names a file of code counts as an import; a module that
 * imports by a computed name counts with all code in its folder; a name that leads nowhere, with all code of its package.
 * Variables of the environment that the text names count by what is in them, and so do the arguments of the program. The
 * language and the time zone always count: nothing names them, and `sort` and dates depend on them.
 */
export class CodeDigests {
  readonly #options: CodeOptions
  readonly #codes = new Map<string, Code>()
  readonly #read = new Map<string, Read>()
  /** What counts for all tasks. */
  readonly #always = [
    NODE,
    setting(LANGUAGE, languageOf(process.env)),
    setting(TIME_ZONE, timeZoneOf(process.env)),
  ]

  constructor(options: CodeOptions) {
    this.#options = options
  }

  /** Of modules, by their URLs. */
  of(modules: readonly string[]): Code {
    const id = modules.join('\n')
    let code = this.#codes.get(id)
    if (!code) this.#codes.set(id, (code = this.#collect(modules)))
    return code
  }

  /** The paths of all files behind the modules, and of the folders of packages. */
  pathsOf(modules: readonly string[]): string[] {
    return [...this.#visit(modules).seen]
  }

  #collect(modules: readonly string[]): Code {
    const { found } = this.#visit(modules)
    const sources = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
    return { digest: digestOf(sources.map(({ path, digest }) => `${path} ${digest}`).join('\n')), sources }
  }

  /** What is behind the modules: the sources by the paths that people know, and the paths of files and of packages. */
  #visit(modules: readonly string[]): { found: Map<string, Source>; seen: Set<string> } {
    const found = new Map<string, Source>(this.#always.map(source => [source.path, source]))
    const seen = new Set<string>()
    const waiting = modules.map(module => (module.startsWith('file:') ? fileURLToPath(module) : module))
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (seen.has(path)) continue
      seen.add(path)
      const { sources, next } = this.#readOnce(path)
      for (const source of sources) found.set(source.path, source)
      waiting.push(...next)
    }
    return { found, seen }
  }

  #readOnce(path: string): Read {
    let read = this.#read.get(path)
    if (!read) {
      try {
        read = this.#readNow(path)
      } catch {
        // What cannot be looked through never counts as unchanged.
        const digest = randomBytes(8).toString('hex')
        read = { sources: [{ path: this.#shown(path), digest, text: null }], next: [] }
      }
      this.#read.set(path, read)
    }
    return read
  }

  #readNow(path: string): Read {
    const shown = this.#shown(path)
    // Only packages are folders.
    if (isFolder(path)) return { sources: [this.#package(path)], next: [] }
    let bytes: Buffer
    try {
      bytes = readFileSync(path)
    } catch {
      return { sources: [{ path: shown, digest: 'missing', text: null }], next: [] }
    }
    const digest = hexOf(digestOf(bytes))
    const text = path.endsWith('.json') || isCode(path) ? bytes.toString('utf8') : null
    if (text === null || !isCode(path)) return { sources: [{ path: shown, digest, text }], next: [] }
    const folder = dirname(path)
    const sources = [{ path: shown, digest, text }, this.#meaning(packageRoot(folder))]
    if (readsArguments(text)) sources.push(setting('process.argv', JSON.stringify(process.argv.slice(2))))
    for (const name of variablesIn(text).filter(one => !isOfAllocation(one)))
      sources.push(setting(`process.env.${name}`, JSON.stringify(process.env[name] ?? null)))
    const next = [...compilerSettings(folder), ...importsOf(path, text)]
    return { sources, next: next.filter(file => !isOwn(file)) }
  }

  /** What a package.json says about the modules beside it. */
  #meaning(folder: string): Source {
    const path = join(folder, 'package.json')
    const { type, imports, exports, main } = readJson(path)
    return {
      path: this.#shown(path),
      digest: hexOf(digestOf(JSON.stringify([type, imports, exports, main]))),
      text: null,
    }
  }

  /** All files of a package. Here a thousand files need not be read to see that they are as they were. */
  #package(folder: string): Source {
    const lines = filesBelow(folder, () => true).map(file => {
      if (this.#options.isShared) return `${relative(folder, file)} ${hexOf(digestOf(readFileSync(file)))}`
      // The time of the last change cannot be set.
      const { size, mtimeMs, ctimeMs } = statSync(file)
      return `${relative(folder, file)} ${size} ${mtimeMs} ${ctimeMs}`
    })
    return { path: this.#shown(folder), digest: hexOf(digestOf(lines.join('\n'))), text: null }
  }

  #shown(path: string): string {
    const within = relative(this.#options.root, path)
    return within.startsWith('..') ? path : within
  }
}

const setting = (path: string, value: string): Source => ({
  path,
  digest: hexOf(digestOf(value)),
  text: null,
})

/** What Node does differs between its versions, and what a processor does with numbers, too. */
const NODE = setting('Node.js', `${process.version} ${process.platform} ${process.arch}`)

/** Whether a source is something else than a file. */
export const isSetting = (path: string): boolean =>
  [NODE.path, LANGUAGE, TIME_ZONE].includes(path) || /^process\.(?:argv|env\.)/.test(path)

/** The first line in which two texts differ, from 1. */
export function firstDifference(before: string, now: string): number {
  const [old, lines] = [before.split('\n'), now.split('\n')]
  for (let i = 0; i < Math.max(old.length, lines.length); i++) if (old[i] !== lines[i]) return i + 1
  return 1
}
