import { existsSync, readFileSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { readParcel } from '../files/parcel.ts'
import type { Parcel } from '../files/parcel.ts'
import { hash } from 'node:crypto'
import { millraceCommand } from './agent-command.ts'

/** What a host without Millrace is sent: the package itself, and those that it needs. */
export interface PackedPackage {
  readonly hash: string
  readonly content: Buffer
}

const FOLDERS = ['bin', 'dist', 'native', 'preload']
/** For people, and for compilers. */
const LEFT_OUT = /\.map$|\.d\.ts$/

let packed: Promise<PackedPackage> | null = null

/** Read once, when the first host asks for it. */
export const packPackage = (): Promise<PackedPackage> => (packed ??= pack(packageParcel()))

async function pack(parcel: Parcel): Promise<PackedPackage> {
  const pieces: Uint8Array[] = []
  for await (const piece of readParcel(parcel)) pieces.push(piece)
  const content = Buffer.concat(pieces)
  return { hash: hash('sha256', content), content }
}

const packageRoot = (): string => dirname(dirname(realpathSync(millraceCommand())))

function packageParcel(): Parcel {
  const root = packageRoot()
  const own = FOLDERS.flatMap(folder => filesBelow(join(root, folder))).filter(path => !LEFT_OUT.test(path))
  const files = [join(root, 'package.json'), ...own].map(from => ({
    from,
    name: join('package', relative(root, from)),
  }))
  return { files: [...files, ...neededBy(root)], links: [] }
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })
}

/** Packages that it needs, and those that they need, each under its name. */
function neededBy(root: string): Parcel['files'] {
  const found = new Map<string, string>()
  const waiting = [root]
  for (let from = waiting.pop(); from !== undefined; from = waiting.pop()) {
    for (const name of dependenciesOf(from)) {
      const folder = found.has(name) ? null : findPackage(from, name)
      if (folder === null) continue
      found.set(name, folder)
      waiting.push(folder)
    }
  }
  return [...found].map(([name, from]) => ({ from, name: join('node_modules', name) }))
}

function dependenciesOf(folder: string): string[] {
  const text = readFileSync(join(folder, 'package.json'), 'utf8')
  const { dependencies, optionalDependencies } = JSON.parse(text) as Record<string, object | undefined>
  return Object.keys({ ...dependencies, ...optionalDependencies })
}

function findPackage(from: string, name: string): string | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(join(found, 'package.json'))) return realpathSync(found)
    if (folder === dirname(folder)) return null
  }
}
