import { join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { hasEnded } from '../../storage/owner.ts'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { ENTRY, ENTRY_WORDS } from '../../store/format.ts'
import { ownerOf, readSegment } from '../../store/segment.ts'
import { Store, segmentsFolder } from '../../store/store.ts'
import type { RunOptions } from '../run-options.ts'
import type { Runtime } from '../runtime.ts'
import { packageVersion } from '../version.ts'
import { CodeDigests } from './code.ts'
import { Keeper } from './keeper.ts'
import { UNASKED, parseCheckpoint } from './policy.ts'
import type { CheckpointPolicy } from './policy.ts'
import { cacheOf, limitOf, makeRoom } from './shared-store.ts'
import { Stores } from './stores.ts'

/** The store of a run, and what to do with it. */
export interface Resuming {
  readonly keeper: Keeper
  /** What the user should know at the start. */
  readonly remarks: readonly string[]
  /** Writes what is left, and makes room. Returns what the user should know at the end. */
  end(outcome: string): Promise<string[]>
}

/** Whether the user wants results of tasks to be kept, or used. */
const isAsked = ({ resume, cache, keep, checkpoint, explain }: RunOptions): boolean =>
  Boolean(resume) || explain === true || [cache, keep, checkpoint].some(one => one !== undefined)

/** Opens the store of a run; null where no results are kept. */
export function openKeeper(runtime: Runtime, run: string, options: RunOptions): Resuming | null {
  if (isAsked(options)) {
    const policy = parseCheckpoint(options.checkpoint ?? 'auto')
    return policy && open(runtime, run, options, policy)
  }
  if (!options.launched || options.journal === false) return null
  try {
    return open(runtime, run, options, UNASKED)
  } catch {
    // It was not asked for: a store that cannot be used is no reason to fail.
    return null
  }
}

function open(runtime: Runtime, run: string, options: RunOptions, policy: CheckpointPolicy): Resuming {
  const limit = limitOf(options.keep)
  const base = options.folder ?? process.cwd()
  const shared = options.cache === undefined ? null : cacheOf(options.cache)
  const local = join(base, '.millrace', 'store')
  // The time comes first, so that segments are read in the order in which they were begun.
  const name = `${Date.now().toString(36).padStart(9, '0')}-${run}`
  const own = Store.open(shared && !shared.isReadOnly ? shared.path : local, { name })
  const others = shared?.isReadOnly ? [Store.open(shared.path, { isReadOnly: true })] : []
  const isLookingUp = Boolean(options.resume) || shared !== null
  const killed = lastKilled(own)
  const only = typeof options.resume === 'string' ? keysOf([own, ...others], options.resume) : null
  const keeper = new Keeper(runtime, {
    stores: new Stores(own, others, only),
    policy,
    isLookingUp,
    explains: options.explain ?? false,
    code: new CodeDigests({ root: base, isShared: shared !== null }),
    root: base,
    version: packageVersion(),
    // A shared store knows no folder: there, paths that a task puts into its result have to be relative.
    salt: shared ? '' : base,
  })
  return {
    keeper,
    remarks: killed ? [killedText(killed, isLookingUp, options)] : [],
    end: async outcome => {
      await keeper.end(endKey(name), outcome)
      const said = options.explain ? keeper.explanations.lines() : []
      said.push(...keeper.overwritten.lines())
      if (own.broken) said.push(`results could not be kept in ${own.folder}: ${own.broken.message}`)
      if (own.isWritten) await makeRoom(own.folder, limit, options.keep !== undefined).catch(() => undefined)
      return said
    },
  }
}

const endKey = (segment: string): Digest => digestOf(`end of ${segment}`)

interface Killed {
  readonly run: string
  readonly results: number
}

/** The last run, if it never said that it ended and its process is gone. */
function lastKilled(store: Store): Killed | null {
  const last = store.segments.findLast(name => !name.startsWith('0-'))
  if (last === undefined || store.has(ENTRY.fact, endKey(last))) return null
  const owner = ownerOf(join(segmentsFolder(store.folder), `${last}.keys`))
  if (!owner || !hasEnded(owner)) return null
  const index = store.segments.indexOf(last)
  let results = 0
  for (let place = 0; place < store.table.size; place++) {
    const { segment, type } = store.table.at(place)
    if (segment === index && type === ENTRY.result) results++
  }
  return { run: runOf(last), results }
}

const runOf = (segment: string): string => segment.slice(segment.indexOf('-') + 1)

/** The command line that goes on where one like this was stopped. Options come before the words of the program. */
export function resumedBy(again: string): string {
  const [, own = again, rest = ''] = /^((?:[^']|'[^']*')*?)( -- .*)$/s.exec(again) ?? []
  return / --resume\b/.test(own) ? again : `${own} --resume${rest}`
}

function killedText({ run, results }: Killed, isLookingUp: boolean, { again }: RunOptions): string {
  const found = `run ${run} was killed, or its machine stopped; it had kept ${results} ${results === 1 ? 'result' : 'results'}`
  if (isLookingUp) return `${found}, which are used where nothing has changed`
  return `${found}. To go on from there: ${again ? resumedBy(again) : 'start with the option --resume'}`
}

/** The results that a run kept or used, for `--resume RUN`. */
function keysOf(stores: readonly Store[], run: string): (key: Digest) => boolean {
  const keys = new Set<string>()
  const runs = new Set<string>()
  for (const store of stores) {
    const { folder, segments } = store
    for (const name of segments) {
      runs.add(runOf(name))
      if (runOf(name) !== run) continue
      readSegment(join(segmentsFolder(folder), `${name}.keys`), (entries, count) => {
        const bytes = Buffer.from(entries.buffer)
        for (let i = 0; i < count; i++)
          keys.add(bytes.toString('hex', i * ENTRY_WORDS * 4, i * ENTRY_WORDS * 4 + 16))
      })
      for (const key of store.usedBy(name)) keys.add(hexOf(key))
    }
  }
  if (keys.size === 0)
    throw new MillraceError('MR_STORE', `nothing is kept of run ${run}`, {
      hint:
        runs.size > 0
          ? `Results are kept of ${[...runs].slice(-8).join(', ')}.`
          : 'No run has kept results here.',
    })
  return key => keys.has(hexOf(key))
}
