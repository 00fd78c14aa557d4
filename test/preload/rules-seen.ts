// What consumers see of what producers did (rules-model.ts); undefined while they must wait.
import { governed } from './play-rules.ts'
import { EIO, ENOENT, Model, type Folder, type Known, type Reader } from './rules-model.ts'

/** A listing on its way: of which directory, once that is open. */
export type Look = { folder: Folder | undefined; waits: boolean }

export class Audience extends Model {
  openToRead(path: string): Reader | number | undefined {
    const inode = this.names.get(path)
    if (!governed(path)) return inode ? { inode, name: path, at: 0, generation: 0, plain: true } : ENOENT
    const known = this.record(path)
    const begun = (): boolean => known.rule.growing && known.state === 'growing'
    if (!begun()) this.evaluate(known)
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed' && !begun()) return undefined
    if (!inode) return ENOENT
    return { inode, name: path, at: 0, generation: known.generation, plain: known.state === 'committed' }
  }

  /** Bytes at an offset, or at the position. What was taken back is found out before the wait, and after it. */
  read(reader: Reader, len: number, waits: boolean, offset?: number): number[] | number | undefined {
    const from = offset ?? reader.at
    const known = reader.plain ? undefined : this.record(reader.name)
    if (known) {
      if (!waits && this.#outdated(reader, known)) return EIO
      const isThere = Array.from({ length: len }, (_, i) => from + i).every(at => known.seen.has(at))
      if (!isThere) this.evaluate(known)
      if (known.state === 'failed') return EIO
      if (known.state !== 'committed' && !isThere) return undefined
      if (this.#outdated(reader, known)) return EIO
      if (known.state === 'committed') reader.plain = true
    }
    const bytes = reader.inode.bytes.slice(from, from + len)
    if (offset === undefined) reader.at += bytes.length
    return bytes
  }

  #outdated(reader: Reader, known: Known): boolean {
    if (reader.generation === known.generation) return false
    if (this.names.get(reader.name) !== reader.inode || reader.at !== 0) return true
    reader.generation = known.generation
    return false
  }

  /** 0: the file is complete; undefined: its reader has to wait for that. */
  #end(reader: Reader): number | undefined {
    if (reader.plain) return 0
    const known = this.record(reader.name)
    this.evaluate(known)
    return known.state === 'failed' ? EIO : known.state === 'committed' ? 0 : undefined
  }

  seekEnd(reader: Reader): number | undefined {
    const end = this.#end(reader)
    return end === 0 ? (reader.at = reader.inode.bytes.length) : end
  }

  /** All of it through a mapping, which has to be complete. */
  map(reader: Reader): number[] | number | undefined {
    const end = this.#end(reader)
    if (end !== 0) return end
    return !reader.plain && this.#outdated(reader, this.record(reader.name)) ? EIO : reader.inode.bytes
  }

  /** The names in the directory, when it is complete. It can be opened before, when it is there. */
  list(look: Look): number[] | number | undefined {
    const known = this.record('d')
    this.evaluate(known)
    const there = this.folders.get('d')
    const begun = known.rule.growing && known.state === 'growing'
    if (!look.folder && there && (!look.waits || begun || known.state === 'committed')) look.folder = there
    look.waits = true
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed') return undefined
    if (!look.folder?.path) return ENOENT
    const names = this.inside(look.folder.path).map(name => `${name.slice(2)} `)
    return [...Buffer.from(names.sort().join(''))]
  }

  size(path: string): number | undefined {
    const inode = this.names.get(path)
    if (!governed(path)) return inode ? inode.bytes.length : ENOENT
    const known = this.record(path)
    this.evaluate(known)
    if (known.state === 'failed') return EIO
    if (known.state !== 'committed') return undefined
    return inode ? inode.bytes.length : ENOENT
  }
}
