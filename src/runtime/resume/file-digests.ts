import { readFileSync, realpathSync, statSync } from 'node:fs'
import { lstat, mkdir, rm, symlink, chmod } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { digestOf, hexOf } from '../../store/digest.ts'
import type { Digest } from '../../store/digest.ts'
import { digestBehind, digestFile, lookAt, lookNow, lookOf, partsOf } from '../../store/file-digest.ts'
import type { Look, TreePart } from '../../store/file-digest.ts'
import { ENTRY } from '../../store/format.ts'
import type { Held } from '../../store/objects.ts'
import type { Store } from '../../store/store.ts'
import type { Output } from './record.ts'
import type { Stores } from './stores.ts'

/** What is in a file or directory. */
export interface Content {
  readonly digest: Digest
  readonly output: Output
  /** Objects of the files in a directory. */
  readonly inside: readonly Digest[]
  /** What it looked like; null when that is not known. */
  readonly look: string | null
}

/** What the store has taken hold of. */
interface HeldFile {
  /** Reads it, and makes objects of it; null when it was written to meanwhile. */
  read(): Promise<Content | null>
  readonly written: string
}

/** A change within this many milliseconds of a look may not be seen in the times of a file. */
const TICK = 20
/** The same where a file system counts whole seconds. */
const LONG_TICK = 2000
/** After a power cut, a file that was this old when it was looked at has been written to the disk; milliseconds. */
const SAFE_AGE = 3600_000

interface Remembered {
  readonly look: string
  readonly digest: string
  readonly list: string | null
  /** When it was looked at, and in which life of this machine. */
  readonly at: number
  readonly boot: string
  readonly changed: number
}

/** A look that takes longer is slow; milliseconds. */
const SLOW = 0.1
/** Looks that are left to other threads when most of the last ones were slow; then it is tried again. */
const SLOW_LOOKS = 256

/** Whether looks at files are answered quickly: those of a file system on the network, or of a cold disk, are not. */
class Pace {
  /** Share of the last looks that were slow. A busy machine makes a few of them slow. */
  #slow = 0
  #skipped = 0

  get isQuick(): boolean {
    if (this.#slow < 0.5) return true
    if (this.#skipped++ < SLOW_LOOKS) return false
    this.#skipped = 0
    this.#slow = 0
    return true
  }

  took(milliseconds: number): void {
    this.#slow += ((milliseconds > SLOW ? 1 : 0) - this.#slow) / 16
  }
}

/** What files hold, by their digests. A file that looks as it did when it was read is not read again. */
export class FileDigests {
  readonly #stores: Stores
  readonly #boot = bootId()
  readonly #pace = new Pace()
  readonly #later = new Set<Promise<void>>()

  constructor(stores: Stores) {
    this.#stores = stores
  }

  /**
   * What is at a path now, at once: a way to another thread and back takes ten times as long as a look. Null when nothing is
   * there; undefined when it has to be read, is a directory, or the file system answers slowly.
   */
  atOnce(path: string): Content | null | undefined {
    if (!this.#pace.isQuick) return undefined
    const begun = performance.now()
    const look = lookNow(path)
    this.#pace.took(performance.now() - begun)
    if (!look) return look
    const remembered = this.#remembered(path, look)
    return remembered ? contentOf(look, Buffer.from(remembered.digest, 'hex'), remembered.list) : undefined
  }

  /** What is at a path now; null when nothing is there, or it changes meanwhile. */
  async now(path: string, size: number | null = null): Promise<Content | null> {
    const look = await lookAt(path).catch(() => null)
    // A file of another size need not be read to see that it is another one.
    if (!look || (size !== null && look.size !== size)) return null
    return this.withLook(path, look)
  }

  /** The same, for a file that was looked at before. */
  async withLook(path: string, look: Look): Promise<Content | null> {
    const remembered = this.#remembered(path, look)
    if (remembered) return contentOf(look, Buffer.from(remembered.digest, 'hex'), remembered.list)
    const content = await this.#read(path, look).catch(() => null)
    const after = await lookAt(path).catch(() => null)
    if (!content || after?.text !== look.text) return null
    this.remember(path, look, content)
    return { ...content, look: look.text }
  }

  /**
   * Takes hold of what is at a path, as objects of the store: from then on it may be moved, replaced and deleted. What it
   * gives reads it, and makes them objects. Null when it cannot be read.
   */
  async hold(path: string, store: Store): Promise<HeldFile | null> {
    const before = await lookAt(path)
    if (!before) return null
    if (before.isDirectory) return this.#holdTree(path, store)
    const held = await store.objects.hold(path)
    // Another link to a file changes the time of its last change.
    const look = await lookAt(path)
    const read = async (): Promise<Content | null> => {
      const digest = await store.objects.keepHeld(held)
      return digest && this.#held(path, look, contentOf(look ?? before, digest, null))
    }
    return { read, written: before.written }
  }

  async #holdTree(path: string, store: Store): Promise<HeldFile> {
    const parts = await partsOf(path)
    const held = new Map<TreePart, Held>()
    for (const part of parts) {
      const file = join(path, part.name)
      if (part.type === 'file' && (await lstat(file)).isFile()) held.set(part, await store.objects.hold(file))
    }
    const look = await lookAt(path)
    const read = async (): Promise<Content | null> => {
      const digestOfPart = async (part: TreePart): Promise<Digest | null> => {
        const file = held.get(part)
        return file === undefined ? digestOf('special') : store.objects.keepHeld(file)
      }
      const content = await treeOf(path, parts, digestOfPart, store)
      return content && this.#held(path, look, content)
    }
    return { read, written: look?.written ?? '' }
  }

  /** Moving the other link to its place changed the time of the last change again. */
  async #held(path: string, before: Look | null, content: Content): Promise<Content> {
    const look = before && (await lookAt(path).catch(() => null))
    if (!look || look.written !== before.written) return { ...content, look: null }
    this.#rememberLater(path, look, content)
    return { ...content, look: look.text }
  }

  /** A file that was just written may be written again without a trace: it is looked at once more, a little later. */
  #rememberLater(path: string, look: Look, content: Content): void {
    const later = new Promise<void>(resolve => setTimeout(resolve, TICK + 10))
      .then(() => lookAt(path).catch(() => null))
      .then(after => {
        if (after?.text === look.text) this.remember(path, look, content)
      })
      .finally(() => this.#later.delete(later))
    this.#later.add(later)
  }

  /** All that is to be remembered has been. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#later)
  }

  /** Remembers what was seen last, whether or not it is old enough: that is asked when it is used. */
  remember(path: string, look: Look, { digest, output }: Content): void {
    const list = output.type === 'directory' ? hexOf(output.list) : null
    const { text, changed } = look
    const at = Date.now()
    if (at - changed < tickOf(changed)) return
    const remembered: Remembered = { look: text, digest: hexOf(digest), list, at, boot: this.#boot, changed }
    this.#stores.put(ENTRY.look, lookKey(path), Buffer.from(JSON.stringify(remembered)))
  }

  #remembered(path: string, look: Look): Remembered | null {
    const bytes = this.#stores.find(ENTRY.look, lookKey(path))
    if (!bytes) return null
    const found = JSON.parse(bytes.toString()) as Remembered
    const isSafe = found.boot === this.#boot || found.at - found.changed > SAFE_AGE
    return found.look === look.text && isSafe ? found : null
  }

  async #read(path: string, look: Look): Promise<Content | null> {
    if (!look.isDirectory) return contentOf(look, await digestFile(path), null)
    const digestOfPart = async ({ name }: TreePart): Promise<Digest> => {
      const file = join(path, name)
      return (await lstat(file)).isFile() ? digestFile(file) : digestOf('special')
    }
    return treeOf(path, await partsOf(path), digestOfPart, null)
  }

  /**
   * Writes what was kept to a path where nothing is, from where it will be moved to another. False when not all of it is
   * there, or its links would lead to something else than they did: then nothing is left.
   */
  async restore(output: Output, path: string, isDirectory: boolean, to: string): Promise<boolean> {
    if (isDirectory) await mkdir(path)
    if (output.type === 'file') {
      const isThere = await this.#stores.restore(output.digest, path)
      if (isThere) await setMode(path, output.isExecutable)
      return isThere
    }
    if (output.type !== 'directory') return false
    const list = await this.#stores.objectBytes(output.list)
    if (!list) return false
    for (const line of list
      .toString()
      .split('\n')
      .filter(text => text !== '')) {
      const part = JSON.parse(line) as TreePart & { digest?: string }
      const inner = join(path, part.name)
      await mkdir(dirname(inner), { recursive: true })
      const isSame = part.type !== 'link' || (await isBehind(to, part))
      if (!isSame || !(await this.#restorePart(part, inner))) {
        await rm(path, { recursive: true, force: true })
        return false
      }
    }
    return true
  }

  /** What was restored has come to its place. */
  async restored(path: string, output: Output): Promise<Content | null> {
    if (!('digest' in output)) return null
    const look = await lookAt(path).catch(() => null)
    const content = { digest: output.digest, output, inside: [], look: look?.text ?? null }
    if (look) this.#rememberLater(path, look, content)
    return content
  }

  async #restorePart(part: TreePart & { digest?: string }, path: string): Promise<boolean> {
    if (part.type === 'folder') await mkdir(path, { recursive: true })
    else if (part.type === 'link') await symlink(part.target ?? '', path)
    else {
      if (!(await this.#stores.restore(Buffer.from(part.digest ?? '', 'hex'), path))) return false
      await setMode(path, part.isExecutable ?? false)
    }
    return true
  }

  /** Of a program, by its name or its path. */
  program(name: string): Digest {
    const path = name.includes('/') ? name : findProgram(name)
    const stats = path === null ? undefined : statSync(path, { bigint: true, throwIfNoEntry: false })
    if (path === null || !stats?.isFile()) return digestOf(`no program ${name}`)
    const look = lookOf(stats)
    const remembered = this.#remembered(path, look)
    if (remembered) return Buffer.from(remembered.digest, 'hex')
    const digest = digestOf(readFileSync(path))
    this.remember(path, look, contentOf(look, digest, null))
    return digest
  }
}

/** Files of one content are one object, whatever their modes are. */
async function setMode(path: string, isExecutable: boolean): Promise<void> {
  const { mode } = await lstat(path)
  const wanted = (isExecutable ? 0o777 : 0o666) & ~process.umask()
  if ((mode & 0o777) !== wanted) await chmod(path, wanted)
}

/** What a link leads to, outside of its directory, is what it was. */
const isBehind = async (folder: string, part: TreePart): Promise<boolean> =>
  (await digestBehind(folder, part).catch(() => 'too much')) === (part.behind ?? null)

/** A directory is a list of what is in it, which is an object itself. Null when a part of it changed meanwhile. */
async function treeOf(
  folder: string,
  parts: readonly TreePart[],
  digestOfPart: (part: TreePart) => Promise<Digest | null>,
  store: Store | null,
): Promise<Content | null> {
  const lines: string[] = []
  const inside: Digest[] = []
  for (const part of parts) {
    const digest = part.type === 'file' ? await digestOfPart(part) : null
    if (part.type === 'file' && !digest) return null
    if (digest) inside.push(digest)
    const behind = part.type === 'link' ? await digestBehind(folder, part) : null
    const more = { ...(digest && { digest: hexOf(digest) }), ...(behind !== null && { behind }) }
    lines.push(JSON.stringify({ ...part, ...more }))
  }
  const list = Buffer.from(lines.join('\n'))
  const digest = digestOf(list)
  await store?.objects.put(digest, list)
  return { digest, output: { type: 'directory', digest, list: digest }, inside, look: null }
}

function contentOf(look: Look, digest: Digest, list: string | null): Content {
  if (look.isDirectory)
    return {
      digest,
      output: { type: 'directory', digest, list: list === null ? digest : Buffer.from(list, 'hex') },
      inside: [],
      look: look.text,
    }
  const { size, isExecutable } = look
  return { digest, output: { type: 'file', digest, size, isExecutable }, inside: [], look: look.text }
}

const lookKey = (path: string): Digest => digestOf(`look ${path}`)

const tickOf = (time: number): number => (Number.isInteger(time / 1000) ? LONG_TICK : TICK)

function findProgram(name: string): string | null {
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    try {
      const path = realpathSync(join(folder, name))
      if (statSync(path).isFile()) return path
    } catch {
      // Not in this folder.
    }
  }
  return null
}

/** Differs after each start of the machine. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return `process ${process.pid}`
  }
}
