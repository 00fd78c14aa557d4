import { readdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import { knownParameters } from '../../flow/language/params.ts'
import { flowState } from '../../flow/language/registry.ts'
import type { Registry } from '../../flow/language/registry.ts'
import { nearest } from '../../general/nearest.ts'
import { loadCompiled } from './code.ts'
import { loadFailure } from '../run/load-failure.ts'
import { enableTypescript, isTypescript } from '../run/typescript.ts'

const NAMES = ['flow.ts', 'flow.mts', 'flow.js', 'flow.mjs', 'flow.cts', 'flow.cjs']

/** The workflow file of a folder, or the one that was named. */
export function findFlow(given: string | undefined): string {
  const path = resolve(given ?? '.')
  const stats = statSync(path, { throwIfNoEntry: false })
  if (given !== undefined && !stats) throw missing(`there is no file ${given}`, dirname(path), basename(path))
  if (stats && !stats.isDirectory()) return realpathSync(path)
  const found = NAMES.map(name => join(path, name)).find(file =>
    statSync(file, { throwIfNoEntry: false })?.isFile(),
  )
  if (!found) throw missing(`there is no flow.ts in ${path}`, path, 'flow.ts')
  return realpathSync(found)
}

function missing(what: string, folder: string, name: string): MillraceError {
  let files: string[] = []
  try {
    files = readdirSync(folder).filter(file => /\.[cm]?[jt]s$/.test(file))
  } catch {
    return new MillraceError('MR_FLOW_FILE', `${what}: there is no folder ${folder}`)
  }
  const close = nearest(
    name,
    files.filter(file => file !== name),
  )
  const hint = close ? { hint: `Try: millrace make --file ${join(folder, close)}` } : {}
  return new MillraceError('MR_FLOW_FILE', `${what}${close ? `; did you mean ${close}?` : ''}`, hint)
}

/** Loads the rules, and keeps them compiled where it may write. The working directory is the folder of the file from here on. */
export async function loadFlow(path: string, mayWrite: boolean): Promise<Registry> {
  process.chdir(dirname(path))
  try {
    await load(path, mayWrite)
  } catch (error) {
    throw loadFailure(path, error)
  }
  flowState.atLoad = knownParameters()
  const { registry } = flowState
  if (registry.rules.length === 0 && registry.targets.size === 0) {
    throw new MillraceError('MR_FLOW_FILE', `${basename(path)} has no rules and no targets`)
  }
  return registry
}

async function load(path: string, mayWrite: boolean): Promise<void> {
  if (/\.m?ts$/.test(path) && (await loadCompiled(path, mayWrite))) return
  if (isTypescript(path)) await enableTypescript()
  await import(pathToFileURL(path).href)
}

/** What is made when nothing is asked for: the first target, else all that rules without wildcards make. */
export function defaultTargets(registry: Registry, path: string): string[] {
  const [first] = registry.targets.keys()
  if (first !== undefined) return [first]
  const files = [...registry.concrete.keys()]
  if (files.length > 0) return files
  throw new MillraceError(
    'MR_FLOW_FILE',
    `${basename(path)} does not say what to make: all its rules have wildcards`,
    {
      hint: "Add a target: target('all', […]), or name a file: millrace make FILE",
    },
  )
}
