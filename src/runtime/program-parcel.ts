import { existsSync, lstatSync, readdirSync, realpathSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { Parcel } from '../cluster/files/parcel.ts'
import { modulePath } from '../model/definition.ts'
import { CodeDigests } from './resume/code.ts'

/**
 * What threads on another machine need to load these modules: the modules, what they import, and the packages that they
 * name, with the links that lead to these. Millrace itself is there already.
 */
export function programParcel(modules: readonly string[]): Parcel {
  const real = modules.map(modulePath).map(path => (existsSync(path) ? realpathSync(path) : path))
  const code = new CodeDigests({ root: '/', isShared: false }).pathsOf(real).filter(existsSync)
  const paths = new Set([...code, ...code.flatMap(settingsFor)])
  const all = withoutInner([...paths].sort())
  const files = all.map(from => ({ from, name: from.slice(1) }))
  return { files, links: [...linksTo(all), ...linksOf(modules)] }
}

/** The package.json around a module says whether it is CommonJS, and what its own names mean. */
function settingsFor(path: string): string[] {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const file = join(folder, 'package.json')
    if (existsSync(file)) return [realpathSync(file)]
    if (folder === dirname(folder)) return []
  }
}

/** Files in a folder that is sent as a whole go with it. */
function withoutInner(sorted: readonly string[]): string[] {
  const folders = new Set(sorted.filter(path => lstatSync(path).isDirectory()))
  const isInner = (path: string): boolean => {
    for (let above = dirname(path); above !== dirname(above); above = dirname(above))
      if (folders.has(above)) return true
    return false
  }
  return sorted.filter(path => !isInner(path))
}

/** Packages are often links: into a workspace, or into the store of a package manager. */
function linksTo(paths: readonly string[]): Parcel['links'] {
  const sent = new Set(paths)
  const isSent = (target: string): boolean =>
    sent.has(target) || paths.some(path => path.startsWith(target + sep))
  const places = new Set<string>()
  for (const path of paths)
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
      places.add(join(folder, 'node_modules'))
  return [...places].sort().flatMap(place =>
    linksIn(place).flatMap(link => {
      const target = realpathSync(link)
      return isSent(target) ? [{ name: link.slice(1), to: target.slice(1) }] : []
    }),
  )
}

function linksIn(place: string): string[] {
  if (!existsSync(place)) return []
  return readdirSync(place, { withFileTypes: true }).flatMap(entry => {
    const path = join(place, entry.name)
    if (entry.isSymbolicLink()) return existsSync(path) && entry.name !== 'millrace' ? [path] : []
    return entry.isDirectory() && entry.name.startsWith('@') ? linksIn(path) : []
  })
}

/** A program may be started through a link; its modules are known by that name. */
function linksOf(modules: readonly string[]): Parcel['links'] {
  return modules.map(modulePath).flatMap(path => {
    if (!existsSync(path)) return []
    const target = realpathSync(path)
    return target === path ? [] : [{ name: path.slice(1), to: target.slice(1) }]
  })
}
