import { createHash } from 'node:crypto'
import { open, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { END, FILE, FOLDER, LINK, header, pieces, walk } from './tree.ts'

/** Files of several folders that are sent as one, such as the modules of a program. */
export interface Parcel {
  /** Files and folders; their names in the parcel are their paths here, or those that are given. */
  readonly files: readonly { readonly from: string; readonly name: string }[]
  /** Links, and what they lead to inside the parcel, both as names there. */
  readonly links: readonly { readonly name: string; readonly to: string }[]
}

/** Times are left out: the same content is the same parcel. Seconds since 1970. */
const MODIFIED = 1_000_000_000
const FOLDER_MODE = 0o755

/** The bytes of a parcel, as `TreeWriter` takes them: the same each time, unless a file was changed. */
export async function* readParcel({ files, links }: Parcel): AsyncGenerator<Uint8Array> {
  yield header(FOLDER, '', FOLDER_MODE, MODIFIED, 0)
  for (const { from, name } of [...files].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    for await (const found of walk(from)) {
      const at = join(from, found.name)
      const inside = join(name, found.name)
      const mode = Number(found.facts.mode) & 0o755
      if (found.facts.isDirectory()) yield header(FOLDER, inside, FOLDER_MODE, MODIFIED, 0)
      else if (found.facts.isSymbolicLink()) yield* link(inside, await readlink(at))
      else if (found.facts.isFile()) {
        const file = await open(at)
        try {
          const { size } = await file.stat()
          yield header(FILE, inside, mode, MODIFIED, size)
          yield* pieces(file, at, size)
        } finally {
          await file.close()
        }
      }
    }
  }
  for (const { name, to } of links) yield* link(name, up(name) + to)
  yield header(END, '', 0, 0, 0)
}

/** A link inside the parcel leads there from wherever the parcel is. */
const up = (name: string): string => '../'.repeat(name.split('/').length - 1)

function* link(name: string, target: string): Generator<Uint8Array> {
  const bytes = Buffer.from(target)
  yield header(LINK, name, 0o777, MODIFIED, bytes.length)
  yield bytes
}

/** Of what is in a parcel: by this it is known on all machines. */
export async function hashOf(parcel: Parcel): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of readParcel(parcel)) hash.update(piece)
  return hash.digest('hex')
}
