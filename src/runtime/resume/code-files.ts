import { readFileSync, readdirSync, realpathSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { dirname, extname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Extensions that loaders try. */
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
const BINARY = new Set(['.node', '.wasm'])
/** TypeScript is imported under the name that it will have when it is compiled. */
const COMPILED: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
  '.jsx': ['.tsx'],
}
const IGNORED = new Set(['node_modules', '.git', '.millrace'])
/** A folder with more files than this cannot be looked through for each run. */
const MOST_FILES = 50_000

export const isCode = (name: string): boolean => CODE.has(extname(name))
/** What is loaded by `import` and `require`; JSON only where it is meant, because programs also write such files. */
export const isLoadable = (name: string): boolean => isCode(name) || BINARY.has(extname(name))
export const isLoadableOrJson = (name: string): boolean => isLoadable(name) || name.endsWith('.json')

export const isFile = (path: string): boolean => statsOf(path)?.isFile() ?? false
export const isFolder = (path: string): boolean => statsOf(path)?.isDirectory() ?? false

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    // A file where a folder should be, or a folder that may not be read.
    return undefined
  }
}

/** Millrace's own code, as it is written and as it is built, counts by its version. */
const HOME = packageRoot(dirname(fileURLToPath(import.meta.url)))
const OWN = [join(HOME, 'src') + sep, join(HOME, 'dist') + sep]
export const isOwn = (path: string): boolean => OWN.some(folder => path.startsWith(folder))

/** All files that a loader may take for this path: which of them it takes depends on the loader. */
export function filesAt(path: string): string[] {
  const extension = extname(path)
  const candidates = [
    ...EXTENSIONS.map(one => path + one),
    ...(COMPILED[extension] ?? []).map(other => path.slice(0, -extension.length) + other),
    ...EXTENSIONS.slice(1).map(one => join(path, `index${one}`)),
  ]
  return candidates.filter(isFile).map(file => realpathSync(file))
}

/** The folders of a package and of those that it needs; null when there is no such package. */
export function packagesOf(from: string, name: string): string[] | null {
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
    // A package that is linked in is code of the user.
    folder.includes(`${sep}node_modules${sep}`) ? [folder] : filesBelow(folder, isLoadableOrJson),
  )
}

export function findPackage(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (isFile(join(found, 'package.json'))) return realpathSync(found)
    if (folder === dirname(folder)) return null
  }
}

export function readJson(path: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function dependenciesOf(folder: string): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = readJson(
    join(folder, 'package.json'),
  ) as Record<string, object | undefined>
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
}

/** The nearest folder with a package.json, or the given one. */
export function packageRoot(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (isFile(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return from
  }
}

/** Settings that say how code is compiled, with those that they extend. */
export function compilerSettings(from: string): string[] {
  const found = new Set<string>()
  for (let folder = from; ; folder = dirname(folder)) {
    const file = join(folder, 'tsconfig.json')
    if (isFile(file)) {
      found.add(file)
      break
    }
    if (folder === dirname(folder) || isFile(join(folder, 'package.json'))) break
  }
  for (const file of found) {
    // It may have comments, so it is not parsed.
    const [, list = ''] = /"extends"\s*:\s*(\[[^\]]*\]|"[^"]*")/.exec(readFileSync(file, 'utf8')) ?? []
    for (const [, name = ''] of list.matchAll(/"([^"]*)"/g)) {
      const path = name.startsWith('.') ? resolve(dirname(file), name) : inPackage(dirname(file), name)
      for (const base of filesAt(path).filter(one => one.endsWith('.json'))) found.add(base)
      if (isFile(join(path, 'tsconfig.json'))) found.add(join(path, 'tsconfig.json'))
    }
  }
  return [...found]
}

function inPackage(from: string, name: string): string {
  const parts = name.split('/')
  const length = name.startsWith('@') ? 2 : 1
  const folder = findPackage(from, parts.slice(0, length).join('/'))
  return folder === null ? name : join(folder, ...parts.slice(length))
}

/** Files below a folder, also those that links lead to. Throws when there are too many. */
export function filesBelow(folder: string, isWanted: (name: string) => boolean): string[] {
  const found = new Set<string>()
  const seen = new Set<string>()
  const folders = [folder]
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    let entries
    try {
      const real = realpathSync(at)
      if (seen.has(real)) continue
      seen.add(real)
      entries = readdirSync(at, { withFileTypes: true })
    } catch {
      continue
    }
    for (const entry of entries) {
      const path = join(at, entry.name)
      const isInner = entry.isDirectory() || (entry.isSymbolicLink() && isFolder(path))
      if (isInner && !IGNORED.has(entry.name)) folders.push(path)
      else if (!isInner && isWanted(entry.name) && (entry.isFile() || isFile(path))) found.add(path)
    }
    if (found.size + seen.size > MOST_FILES) throw new Error(`${folder} has more than ${MOST_FILES} files`)
  }
  return [...found].sort()
}
