import type { Version } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import type { Kept } from '../../model/encoding/stored.ts'
import { jobOf } from '../../node/job.ts'
import { digestOf, digestOfAll } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import type { Content } from './file-digests.ts'
import type { Keeper, Made } from './keeper.ts'
import { keepingOf } from './keeping.ts'
import { digestOfKept, isWhole, readKept, sizeOfKept, writeKept } from './kept-values.ts'
import type { ValueDigest } from './kept-values.ts'
import { NO_DIGEST, SMALL } from './record.ts'
import type { Output } from './record.ts'

/** Larger values are objects of the store; bytes. */
const INLINE = 256 * 1024

const UNKNOWN: ValueDigest = { digest: NO_DIGEST, hasClasses: false }

/** What a task has made, ready to be kept. */
export interface Outputs {
  /** In memory. */
  readonly bytes: number
  readonly made: Made | Promise<Made | null>
}

type Part = Output | Promise<Output | null>

const NO_INSIDE: Made['inside'] = new Map()

/** Takes what the task made; a sentence when that cannot be kept. Values are copied: they may be moved right after. */
export function outputsOf(task: Task, keeper: Keeper, isIgnored: boolean): Outputs | string {
  const { definition, slots } = jobOf(task)
  const keeping = keepingOf(task)
  const parts: Part[] = []
  const inside = new Map<Output, readonly Digest[]>()
  let bytes = 0
  const addValue = (version: Version | null, index: number): boolean => {
    const early = keeping?.early?.get(index)
    const kept = (early && readKept(early)) ?? (version?.value as Kept | undefined)
    if (kept === undefined || !isWhole(kept)) return false
    const size = sizeOfKept(kept)
    bytes += size
    const isSmall = size <= SMALL
    const known = isSmall ? UNKNOWN : version && keeper.digests.of(version)
    parts.push(valueOutput(kept, known, keeper))
    return true
  }
  for (let i = 0; i < slots.length; i++) {
    const write = task.accesses[i]?.write
    if (!write) continue
    if (slots[i]?.kind === 'value') {
      if (!addValue(write, -1)) return 'what it wrote is in a thread'
    } else {
      const content = keeping?.files?.get(i)
      if (!content) return 'an output file is missing'
      parts.push(content.then(found => fileOutput(found, inside)))
    }
  }
  if (definition.stream) {
    const why = addYields(task, keeper, isIgnored, parts)
    if (why !== null) return why
    bytes += keeping?.earlyBytes ?? 0
  } else {
    for (let i = 0; i < (definition.returns || 1); i++) {
      if (!addValue(task.accesses[slots.length + i]?.write ?? null, definition.returns > 0 ? i : -1))
        return 'a value that it released early is gone'
    }
  }
  return { bytes, made: allOf(parts, inside) }
}

function fileOutput(content: Content | null, inside: Map<Output, readonly Digest[]>): Output | null {
  if (!content) return null
  inside.set(content.output, content.inside)
  return content.output
}

/** The values that a generator gave. */
function addYields(task: Task, keeper: Keeper, isIgnored: boolean, parts: Part[]): string | null {
  const channel = keeper.runtime.channels.madeBy(task)
  const early = keepingOf(task)?.early
  const stream = channel?.stream
  const give = (digest: ValueDigest | null): void => {
    if (stream) keeper.digests.streamEnded(stream, digest)
  }
  const count = channel?.count ?? 0
  if (!channel || channel.isClosed || isIgnored || (early?.size ?? 0) !== count) {
    give(null)
    return channel?.isClosed ? 'not all of its values were taken' : 'not all of its values are known'
  }
  const digests: Promise<ValueDigest>[] = []
  for (let i = 0; i < count; i++) {
    const written = early?.get(i)
    if (!written) {
      give(null)
      return 'not all of its values are known'
    }
    const digest = Promise.resolve(digestOfKept(readKept(written)))
    digests.push(digest)
    parts.push(digest.then(sum => writtenOutput(written, sum, keeper)))
  }
  void Promise.all(digests).then(all => give(streamDigest(all)))
  return null
}

/** What a stream is known by: its values, in order. */
export const streamDigest = (values: readonly ValueDigest[]): ValueDigest => ({
  digest: digestOfAll([`stream of ${values.length}`, ...values.map(({ digest }) => digest)]),
  hasClasses: values.some(({ hasClasses }) => hasClasses),
})

function valueOutput(kept: Kept, known: ReturnType<Keeper['digests']['of']>, keeper: Keeper): Part {
  const written = writeKept(kept)
  const digest = known ?? digestOfKept(kept)
  if (digest instanceof Promise) return digest.then(sum => sum && writtenOutput(written, sum, keeper))
  return writtenOutput(written, digest, keeper)
}

function writtenOutput(bytes: Buffer, { digest, hasClasses }: ValueDigest, keeper: Keeper): Part {
  if (bytes.length <= INLINE) return { type: 'value', digest, hasClasses, bytes }
  const object = digestOf(bytes)
  return keeper.stores.own.objects
    .put(object, bytes)
    .then(() => ({ type: 'large', digest, hasClasses, object }))
}

function allOf(parts: readonly Part[], inside: Map<Output, readonly Digest[]>): Made | Promise<Made | null> {
  if (!parts.some(part => part instanceof Promise)) return { outputs: parts as Output[], inside: NO_INSIDE }
  return Promise.all(parts.map(part => Promise.resolve(part))).then(outputs =>
    outputs.includes(null) ? null : { outputs: outputs as Output[], inside },
  )
}
