import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { flowState } from '../../flow/language/registry.ts'
import { compile, digest, digestOf } from './compile.ts'
import type { Source } from './compile.ts'
import { codeOf } from '../problem.ts'

/**
 * The workflow file as JavaScript, kept in `.millrace/flow/code`. A loader that compiles whatever is imported takes a
 * thread and a quarter of a second to start, in each run; this is for workflows that can do without one. What was
 * compiled counts as long as all that went into it is as it was.
 */
interface Compiled {
  /** Versions of what has compiled it. */
  readonly by: string
  /** What it was made of, the workflow file first. */
  readonly sources: readonly Source[]
  /** The folder beside this, with a module for each source, and digests of those. */
  readonly folder: string
  readonly modules: readonly string[]
}

const MANIFEST = 'code.json'
const FORMAT = 1

/** Loads the workflow file. False when that needs a loader, and nothing has been done. */
export async function loadCompiled(path: string, mayWrite: boolean): Promise<boolean> {
  const kept = join(dirname(path), '.millrace', 'flow', 'code', basename(path))
  const compiled = readCompiled(kept, path) ?? (await compileInto(kept, path, mayWrite))
  if (!compiled) return false
  process.setSourceMapsEnabled(true)
  try {
    await import(pathToFileURL(join(kept, compiled.folder, '0.mjs')).href)
    return true
  } catch (error) {
    const { registry } = flowState
    if (isUnlinked(error) && registry.rules.length === 0 && registry.targets.size === 0) return false
    throw error
  }
}

/** Imports are looked for before the first line is run, so nothing has happened; the loader looks in more places. */
const isUnlinked = (error: unknown): boolean =>
  ['ERR_MODULE_NOT_FOUND', 'ERR_UNKNOWN_FILE_EXTENSION'].includes(codeOf(error) ?? '') ||
  (error instanceof SyntaxError && /export named|Named export/.test(error.message))

function readCompiled(kept: string, path: string): Compiled | null {
  try {
    const found = JSON.parse(readFileSync(join(kept, MANIFEST), 'utf8')) as Compiled
    const isCurrent =
      found.by === compiler().by &&
      found.sources[0]?.path === path &&
      found.sources.every(source => digestOf(source.path) === source.digest) &&
      found.modules.every((module, i) => digestOf(join(kept, found.folder, `${i}.mjs`)) === module)
    return isCurrent ? found : null
  } catch {
    return null
  }
}

async function compileInto(kept: string, path: string, mayWrite: boolean): Promise<Compiled | null> {
  if (!mayWrite && !existsSync(dirname(dirname(kept)))) return null
  const name = `${process.pid}-${Date.now().toString(36)}`
  const folder = join(kept, name)
  const { by, packageFile } = compiler()
  const made = await compile(path, folder, packageFile)
  if (!made) return null
  const compiled: Compiled = { by, sources: made.sources, folder: name, modules: made.modules.map(digest) }
  try {
    mkdirSync(folder, { recursive: true })
    for (const [i, text] of made.modules.entries()) writeFileSync(join(folder, `${i}.mjs`), text)
    writeFileSync(join(folder, MANIFEST), JSON.stringify(compiled))
    renameSync(join(folder, MANIFEST), join(kept, MANIFEST))
    for (const other of readdirSync(kept)) {
      if (other !== name && other !== MANIFEST) rmSync(join(kept, other), { recursive: true, force: true })
    }
    return compiled
  } catch {
    // A folder that cannot be written, or a full disk: there will be words about that where it matters.
    removeQuietly(folder)
    return null
  }
}

function removeQuietly(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // It is not there, or not a folder.
  }
}

/** What compiles is found where the loader finds it, so that both give the same code. */
function compiler(): { by: string; packageFile: string } {
  const loader = createRequire(import.meta.url).resolve('tsx/package.json')
  const packageFile = createRequire(loader).resolve('esbuild/package.json')
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }
  return { by: `${FORMAT} ${version} ${process.version}`, packageFile }
}
