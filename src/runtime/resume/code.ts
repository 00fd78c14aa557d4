import { readFileSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, extname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'

/** One file of the code behind a task. */
export interface Source {
  /** As people know it: below the folder of the program where it is there. */
  readonly path: string
  /** Hex. */
  readonly digest: string
  /** Null for packages, of which only names, sizes and times are looked at. */
  readonly text: string | null
}

/** All that the code of a module can depend on, and one digest for it. */
export interface Code {
  readonly digest: Digest
  readonly sources: readonly Source[]
}

const EXTENSIONS = [
  '',
  '.ts',
  '.mts',
  '.cts',
  '.tsx',
  '.js',
  '.mjs',
  '.cjs',
  '.jsx',
  '.json',
  '.node',
  '.wasm',
]
const CODE = new Set(EXTENSIONS.slice(1, 9))
/** TypeScript is imported under the name that it will have when it is compiled. */
const COMPILED: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
  '.jsx': ['.tsx'],
}
/** Texts that may name a file: whatever they are used for, what they name counts. */
const RELATIVE = /(['"`])((?:\.{1,2}\/|file:\/\/)[^'"`\n$]*)\1/g
/** What is imported by any other name. */
const IMPORTED = /\b(?:from|import|require|resolve)\s*\(?\s*(['"`])([^'"`\n]+)\1/g
/** Imports whose name is known only when they happen. */
const COMPUTED = /\b(?:import|require)\s*\(\s*(?!['"`][^'"`\n$]*['"`]\s*[,)])|\bcreateRequire\b/
const IGNORED = new Set(['node_modules', '.git', '.millrace'])
/** A folder with more files than this is not searched to its end. */
const MOST_FILES = 20_000

/** Millrace's own code, as it is written and as it is built, counts by its version. */
const OWN = ownFolders(dirname(fileURLToPath(import.meta.url)))

function ownFolders(from: string): string[] {
  const root = packageRoot(from)
  return [join(root, 'src') + sep, join(root, 'dist') + sep]
}

/**
 * The code behind tasks: the module that defines it, and what it imports, in turn. It is found by looking at the text, not by
 * running it, and rather counts too much than too little: each text that names a file counts as an import; a module that
 * imports by a computed name counts with all code in its folder; a name that leads nowhere, with all code of its package.
 */
export class CodeDigests {
  readonly #root: string
  readonly #codes = new Map<string, Code>()
  readonly #sources = new Map<string, { source: Source; next: readonly string[] }>()
  readonly #packages = new Map<string, Source>()

  /** `root`: paths are relative to it, so they stay the same when all of it moves to another folder. */
  constructor(root: string) {
    this.#root = root
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
    return [...this.#sourcesOf(modules).keys()]
  }

  #collect(modules: readonly string[]): Code {
    const found = this.#sourcesOf(modules)
    const sources = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
    return { digest: digestOf(sources.map(({ path, digest }) => `${path} ${digest}`).join('\n')), sources }
  }

  #sourcesOf(modules: readonly string[]): Map<string, Source> {
    const found = new Map<string, Source>()
    const waiting = modules.map(module => (module.startsWith('file:') ? fileURLToPath(module) : module))
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (found.has(path)) continue
      const { source, next } = this.#read(path)
      found.set(path, source)
      waiting.push(...next)
    }
    return found
  }

  #read(path: string): { source: Source; next: readonly string[] } {
    let read = this.#sources.get(path)
    if (!read) this.#sources.set(path, (read = this.#readNow(path)))
    return read
  }

  #readNow(path: string): { source: Source; next: readonly string[] } {
    const shown = this.#shown(path)
    if (isPackageFolder(path)) return { source: this.#package(path), next: [] }
    let bytes: Buffer
    try {
      bytes = readFileSync(path)
    } catch {
      return { source: { path: shown, digest: 'missing', text: null }, next: [] }
    }
    const digest = hexOf(digestOf(bytes))
    if (!CODE.has(extname(path))) return { source: { path: shown, digest, text: null }, next: [] }
    const text = bytes.toString('utf8')
    return { source: { path: shown, digest, text }, next: importsOf(path, text) }
  }

  /** All files of a package by name, size and time: to read a thousand files takes too long. */
  #package(folder: string): Source {
    let source = this.#packages.get(folder)
    if (!source) {
      const lines = filesBelow(folder, () => true).map(file => {
        const { size, mtimeMs } = statSync(file)
        return `${relative(folder, file)} ${size} ${mtimeMs}`
      })
      source = { path: this.#shown(folder), digest: hexOf(digestOf(lines.join('\n'))), text: null }
      this.#packages.set(folder, source)
    }
    return source
  }

  #shown(path: string): string {
    const within = relative(this.#root, path)
    return within.startsWith('..') ? path : within
  }
}

function importsOf(path: string, text: string): string[] {
  const folder = dirname(path)
  const found: string[] = settingsOf(folder)
  for (const [, , name = ''] of text.matchAll(RELATIVE)) {
    const file = fileAt(name.startsWith('file:') ? urlPath(name) : resolve(folder, name))
    if (file !== null && !isOwn(file)) found.push(file)
  }
  let isUnknown = false
  for (const [, , name = ''] of text.matchAll(IMPORTED)) {
    if (/^(?:\.{1,2}\/|file:|\.{1,2}$|data:|https?:)/.test(name) || isBuiltin(name)) continue
    const known = packagesOf(folder, name)
    if (known) found.push(...known)
    else if (/^[@#~\w]/.test(name) && !name.includes(' ')) isUnknown = true
  }
  if (COMPUTED.test(text)) found.push(...filesBelow(folder, isCode))
  if (isUnknown) found.push(...filesBelow(packageRoot(folder), isCode))
  return found.filter(file => !isOwn(file))
}

const isCode = (name: string): boolean => CODE.has(extname(name))
const isOwn = (path: string): boolean => OWN.some(folder => path.startsWith(folder))

function urlPath(name: string): string {
  try {
    return fileURLToPath(name)
  } catch {
    return name
  }
}

/** The file that is meant, as loaders find it. */
function fileAt(path: string): string | null {
  for (const extension of EXTENSIONS) if (isFile(path + extension)) return realpathSync(path + extension)
  const extension = extname(path)
  for (const other of COMPILED[extension] ?? []) {
    const source = path.slice(0, -extension.length) + other
    if (isFile(source)) return realpathSync(source)
  }
  for (const other of EXTENSIONS.slice(1))
    if (isFile(join(path, `index${other}`))) return realpathSync(join(path, `index${other}`))
  return null
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}

/** The folders of a package and of those that it needs; null when there is no such package. */
function packagesOf(from: string, name: string): string[] | null {
  const wanted = name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
  if (wanted === 'millrace') return []
  const first = findPackage(from, wanted)
  if (first === null) return null
  const found = new Set([first])
  for (const folder of found) {
    for (const other of dependenciesOf(folder)) {
      const next = findPackage(folder, other)
      if (next !== null && other !== 'millrace') found.add(next)
    }
  }
  return [...found].flatMap(folder =>
    // A package that is linked in is somebody's own code.
    folder.includes(`${sep}node_modules${sep}`) ? [folder] : filesBelow(folder, isCode),
  )
}

function findPackage(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (isFile(join(found, 'package.json'))) return realpathSync(found)
    if (folder === dirname(folder)) return null
  }
}

function dependenciesOf(folder: string): string[] {
  try {
    const text = readFileSync(join(folder, 'package.json'), 'utf8')
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(text) as Record<
      string,
      object
    >
    return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
  } catch {
    return []
  }
}

/** The path of a package is that of its folder; all others are files. */
function isPackageFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/** Settings that say how code is compiled. */
function settingsOf(from: string): string[] {
  for (let folder = from; ; folder = dirname(folder)) {
    const file = join(folder, 'tsconfig.json')
    if (isFile(file)) return [file]
    if (folder === dirname(folder) || isFile(join(folder, 'package.json'))) return []
  }
}

function packageRoot(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (isFile(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return from
  }
}

function filesBelow(folder: string, isWanted: (name: string) => boolean): string[] {
  const found: string[] = []
  const folders = [folder]
  for (let at = folders.pop(); at !== undefined && found.length < MOST_FILES; at = folders.pop()) {
    let entries
    try {
      entries = readdirSync(at, { withFileTypes: true })
    } catch {
      continue
    }
    for (const entry of entries) {
      if (entry.isDirectory() && !IGNORED.has(entry.name)) folders.push(join(at, entry.name))
      else if (entry.isFile() && isWanted(entry.name)) found.push(join(at, entry.name))
    }
  }
  return found.sort()
}

/** The first line in which two texts differ, from 1. */
export function firstDifference(before: string, now: string): number {
  const [old, lines] = [before.split('\n'), now.split('\n')]
  for (let i = 0; i < Math.max(old.length, lines.length); i++) if (old[i] !== lines[i]) return i + 1
  return 1
}
