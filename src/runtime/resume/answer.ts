import type { Version } from '../../core/data/datum.ts'
import type { Task } from '../../core/tasks/task.ts'
import { jobOf } from '../../node/job.ts'
import type { Keeper } from './keeper.ts'
import type { Content } from './file-digests.ts'
import { readKept } from './kept-values.ts'
import type { ValueDigest } from './kept-values.ts'
import { streamDigest } from './outputs.ts'
import { NO_DIGEST, SMALL } from './record.ts'
import type { Output, Record } from './record.ts'
import type { Kept } from '../../model/encoding/stored.ts'

/** A value, and where it goes. */
interface Value {
  readonly version: Version
  readonly kept: Kept
  readonly output: Extract<Output, { type: 'value' | 'large' }>
  readonly isSmall: boolean
}

interface File {
  readonly version: Version
  readonly isDirectory: boolean
  readonly output: Output
}

/**
 * Puts what was kept of a task where its readers will look. False when not all of it is there: then nothing has changed.
 * At once, unless there are files.
 */
export function answer(
  task: Task,
  record: Pick<Record, 'isStream' | 'outputs'>,
  keeper: Keeper,
): boolean | Promise<boolean> {
  const { slots, definition } = jobOf(task)
  const { outputs } = record
  const values: Value[] = []
  const files: File[] = []
  let next = 0
  const addValue = (version: Version | null | undefined): boolean => {
    const output = outputs[next++]
    const value = version && output ? valueOf(output, version, keeper) : null
    if (value) values.push(value)
    return value !== null
  }
  for (let i = 0; i < slots.length; i++) {
    const write = task.accesses[i]?.write
    if (!write) continue
    if (slots[i]?.kind === 'value') {
      if (!addValue(write)) return false
      continue
    }
    const output = outputs[next++]
    if (!output || output.type !== slots[i]?.kind) return false
    files.push({ version: write, isDirectory: output.type === 'directory', output })
  }
  const isStream = definition.stream !== null
  if (record.isStream !== isStream) return false
  const yields: { kept: Kept; digest: ValueDigest }[] = []
  if (isStream) {
    const stream = task.accesses[slots.length]?.write as Version
    for (; next < outputs.length; next++) {
      const value = valueOf(outputs[next] as Output, stream, keeper)
      if (!value) return false
      yields.push({ kept: value.kept, digest: digestIn(value.output) })
    }
  } else {
    for (let i = 0; i < (definition.returns || 1); i++)
      if (!addValue(task.accesses[slots.length + i]?.write)) return false
  }
  const give = (): true => {
    for (const { version, kept, output, isSmall } of values) {
      version.value = kept
      if (!isSmall) keeper.digests.set(version, digestIn(output))
    }
    if (isStream) giveYields(task, yields, keeper)
    return true
  }
  const adopted = files.length === 0 || adoptAll(files, keeper)
  if (adopted instanceof Promise) return adopted.then(give)
  if (adopted) return give()
  return restoreAll(files, keeper).then(isThere => isThere && give())
}

function valueOf(output: Output, version: Version, keeper: Keeper): Value | null {
  if (output.type !== 'value' && output.type !== 'large') return null
  const bytes = output.type === 'value' ? output.bytes : keeper.stores.objectBytesNow(output.object)
  return (
    bytes && { version, kept: readKept(bytes), output, isSmall: bytes.length <= SMALL || !hasDigest(output) }
  )
}

/** What is written is longer than the value that was small. */
const hasDigest = ({ digest }: Value['output']): boolean => !digest.equals(NO_DIGEST)

const digestIn = ({ digest, hasClasses }: Value['output']): ValueDigest => ({ digest, hasClasses })

function giveYields(
  task: Task,
  yields: readonly { kept: Kept; digest: ValueDigest }[],
  keeper: Keeper,
): void {
  const { channels, engine } = keeper.runtime
  const channel = channels.madeBy(task)
  if (!channel) return
  keeper.digests.set(channel.stream, streamDigest(yields.map(({ digest }) => digest)))
  for (const { kept, digest } of yields) {
    const version = channel.give(kept)
    keeper.digests.set(version, digest)
    engine.commit(version, keeper.runtime.now())
  }
}

/** All files are in place already, as far as that can be seen at once. Else it takes longer to see. */
function adoptAll(files: readonly File[], keeper: Keeper): boolean | Promise<true> {
  const { store } = keeper.runtime.files
  const contents: Content[] = []
  for (const { version, output } of files) {
    const content = output.type === 'file' ? keeper.files.atOnce(version.datum.path as string) : null
    if (!content || !isSame(content, output)) return false
    contents.push(content)
  }
  const late: Promise<void>[] = []
  for (const [i, { version, output }] of files.entries()) {
    const adopted = store.adopt(version, output.type === 'file' ? output.size : 0)
    if (adopted) late.push(adopted)
    keeper.digests.setFile(version, contents[i] as Content)
  }
  return late.length === 0 ? true : Promise.all(late).then(() => true)
}

/** All files are in place already, or are brought there; else none of them is touched. */
async function restoreAll(files: readonly File[], keeper: Keeper): Promise<boolean> {
  const { store } = keeper.runtime.files
  const staged: { file: File; path: string }[] = []
  const inPlace: { file: File; content: Content }[] = []
  const drop = async (): Promise<false> => {
    for (const { path } of staged) await store.drop(path).catch(() => undefined)
    return false
  }
  for (const file of files) {
    const { version, output, isDirectory } = file
    const to = version.datum.path as string
    const content = await contentAt(to, output, keeper)
    if (content) {
      inPlace.push({ file, content })
      continue
    }
    const path = await store.stage(version, false, null).catch(() => null)
    if (path === null) return drop()
    staged.push({ file, path })
    if (!(await keeper.files.restore(output, path, isDirectory, to))) return drop()
  }
  for (const { file, content } of inPlace) {
    const { version, output } = file
    await store.adopt(version, output.type === 'file' ? output.size : 0)
    keeper.digests.setFile(version, content)
  }
  for (const { file, path } of staged) {
    const { version, output } = file
    await store.commit(version, path)
    keeper.digests.setFile(version, keeper.files.restored(version.datum.path as string, output))
  }
  return true
}

/** What is at the path, if it is what was kept. It is read only if it does not look as it did. */
async function contentAt(path: string, output: Output, keeper: Keeper): Promise<Content | null> {
  const found = await keeper.files.now(path, output.type === 'file' ? output.size : null).catch(() => null)
  return found && isSame(found, output) ? found : null
}

function isSame(found: Content, output: Output): boolean {
  if (found.output.type !== output.type || !('digest' in output)) return false
  const isSameMode =
    output.type !== 'file' ||
    (found.output.type === 'file' && found.output.isExecutable === output.isExecutable)
  return isSameMode && found.digest.equals(output.digest)
}
