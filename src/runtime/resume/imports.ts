import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  filesAt,
  filesBelow,
  isCode,
  isFolder,
  isLoadable,
  isLoadableOrJson,
  packageRoot,
  packagesOf,
  readJson,
} from './code-files.ts'

/** Texts that may name a file: whatever they are used for, code that they name counts. */
const RELATIVE =
  /'((?:\.{0,2}\/|file:\/\/)[^'\n]*)'|"((?:\.{0,2}\/|file:\/\/)[^"\n]*)"|`((?:\.{0,2}\/|file:\/\/)[^`\n]*)`/g
/** What stands before a text that names something to be loaded: other files than code count only then. */
const LOADS = /\b(?:from|import|require|resolve|URL)\s*\(?\s*(?:\/\*[^*]*\*\/\s*)?$/
/** What is imported by any other name. */
const IMPORTED = /\b(?:from|import|require|resolve)\s*\(?\s*(['"`])([^'"`\n]+)\1/g
/** Imports whose name is known only when they happen. */
const COMPUTED =
  /\b(?:import|require)\s*\(\s*(?!(?:\/\*[^*]*\*\/\s*)?['"`][^'"`\n$]*['"`]\s*[,)])|\bcreateRequire\b/
const JSON_MEANT = /\.json\b|(['"`])json\1/

/** All files that a module may load, found by looking at its text: rather too many than too few. */
export function importsOf(path: string, text: string): string[] {
  const folder = dirname(path)
  const isComputed = COMPUTED.test(text)
  const isMeant = isComputed && JSON_MEANT.test(text) ? isLoadableOrJson : isLoadable
  const found: string[] = []
  for (const match of text.matchAll(RELATIVE)) {
    const name = match[1] ?? match[2] ?? match[3] ?? ''
    const isLoaded = LOADS.test(text.slice(Math.max(0, match.index - 80), match.index))
    const files = namesOf(name).flatMap(one => filesAt(resolve(folder, one)))
    // A `require` that was made for the module may have any name.
    found.push(...files.filter(file => isLoaded || isComputed || isCode(file)))
    // The beginning of a name that is computed. Any text may begin with a slash.
    const isBeginning = isComputed && files.length === 0 && (isLoaded || !name.startsWith('/'))
    if (isBeginning) found.push(...filesBelow(folderOf(folder, name), isMeant))
  }
  let unknown = ''
  for (const [, , name = ''] of text.matchAll(IMPORTED)) {
    if (/^(?:\.{1,2}\/|file:|\.{1,2}$|data:|https?:)/.test(name) || isBuiltin(name)) continue
    const known = name.startsWith('#') ? mappedBy(folder) : packagesOf(folder, name)
    if (known) found.push(...known)
    else if (/^[@~$\w]/.test(name) && !name.includes(' ')) unknown += `${name} `
  }
  if (isComputed) found.push(...filesBelow(folder, isMeant))
  if (unknown !== '')
    found.push(...filesBelow(packageRoot(folder), JSON_MEANT.test(unknown) ? isLoadableOrJson : isLoadable))
  return found
}

/** A name as a path, and as loaders read it: without a query, and decoded. */
function namesOf(name: string): string[] {
  const plain = name.replace(/[?#].*$/, '')
  const names = new Set([name, plain])
  try {
    names.add(plain.startsWith('file:') ? fileURLToPath(plain) : decodeURIComponent(plain))
  } catch {
    // No such name.
  }
  return [...names]
}

function folderOf(from: string, name: string): string {
  const path = resolve(from, name.replace(/\$\{.*$/, ''))
  return isFolder(path) ? path : dirname(path)
}

/** What the names that begin with # of a package stand for. */
function mappedBy(from: string): string[] {
  const root = packageRoot(from)
  const targets: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value === 'string') targets.push(value)
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect)
  }
  collect(readJson(join(root, 'package.json'))['imports'])
  return targets.flatMap(target => {
    if (!target.startsWith('./')) return packagesOf(root, target) ?? []
    const [start = '', ...rest] = target.split('*')
    return rest.length > 0 ? filesBelow(folderOf(root, start), isLoadableOrJson) : filesAt(join(root, target))
  })
}

/** Arguments of the program that code may look at. */
export const readsArguments = (text: string): boolean => /\bargv\b|\bparseArgs\s*\(/.test(text)

/** The environment, where what follows does not say which variable is meant. */
const WHOLE = /\benv\b(?!\s*(?:\??\.\s*[A-Za-z_]|(?:\?\.)?\[\s*['"`][^'"`$\n]+['"`]))/

/** Variables of the environment that code names. */
export function variablesIn(text: string, env: Readonly<Record<string, unknown>> = process.env): string[] {
  const names = new Set<string>()
  for (const [, name = ''] of text.matchAll(/\benv\s*\??\.\s*([A-Za-z_]\w*)/g)) names.add(name)
  for (const [, , name = ''] of text.matchAll(/\benv\s*(?:\?\.)?\[\s*(['"`])([^'"`$\n]+)\1\s*\]/g))
    names.add(name)
  for (const [, list = ''] of text.matchAll(
    /\{([^{}]*)\}\s*=\s*(?:globalThis\s*\.\s*)?(?:process\s*\.\s*)?env\b/g,
  ))
    for (const [, name = ''] of list.matchAll(/(?:^|,)\s*['"]?([A-Za-z_]\w*)/g)) names.add(name)
  // Shells of commands have the variables, too.
  for (const [, name = ''] of text.matchAll(/\$\{?([A-Z_][A-Z\d_]*)\b/g)) names.add(name)
  // Where all of them are handed on, or have another name, any word may be the name of one.
  if (/\bprocess\b/.test(text) && WHOLE.test(text)) {
    for (const [name] of text.matchAll(/\b[A-Z][A-Z\d_]+\b/g)) names.add(name)
    const words = new Set(text.match(/\b[A-Za-z_]\w*\b/g))
    for (const name of Object.keys(env)) if (words.has(name)) names.add(name)
  }
  return [...names]
}
