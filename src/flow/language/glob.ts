import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Pattern } from './pattern.ts'
import type { Wildcards } from './pattern.ts'
import { expectText } from './readable-name.ts'
import { flowState } from './registry.ts'

/**
 * Files that exist, sorted: `*` and `?` match within a name, `**` any number of folders, `[a-z]` a character,
 * `{a,b}` either. Names that begin with a dot are matched only by a pattern that does so too.
 */
export function glob(pattern: string): string[] {
  const found = new Set<string>()
  for (const one of alternatives(pattern)) {
    const absolute = one.startsWith('/')
    const parts = one.split('/').filter(part => part !== '' && part !== '.')
    walk(absolute ? '/' : '', parts, found)
  }
  return [...found].sort()
}

/** The wildcards of the files that exist and match: [{ name: 'a' }, …]. */
export function wildcards<const P extends string>(pattern: P): Wildcards[] {
  const parsed = new Pattern(pattern)
  const marker = '\u0001'
  const filled = parsed.fill(Object.fromEntries(parsed.names.map(name => [name, marker])))
  // What a constraint allows may have slashes, so all folders below the first wildcard are looked at.
  const fixed = filled.slice(0, filled.indexOf(marker))
  const folder = fixed.slice(0, fixed.lastIndexOf('/') + 1)
  const found: Wildcards[] = []
  const look = (inside: string): void => {
    for (const entry of list(inside || '.')) {
      const path = `${inside}${entry.name}`
      const matched = parsed.match(path)
      if (matched) {
        expectText(inside || '.', entry.name)
        found.push(matched)
      }
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        look(`${path}/`)
    }
  }
  if (parsed.names.length > 0) look(folder)
  return found
}

function list(folder: string) {
  flowState.listed.add(resolve(folder))
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

function walk(folder: string, parts: readonly string[], found: Set<string>): void {
  const [part, ...rest] = parts
  if (part === undefined) return
  const within = (name: string): string => (folder === '' ? name : join(folder, name))
  if (part === '**') {
    walk(folder, rest, found)
    for (const entry of list(folder || '.')) {
      if (entry.isDirectory() && !entry.name.startsWith('.')) walk(within(entry.name), parts, found)
    }
    return
  }
  if (!/[*?[]/.test(part)) {
    const path = within(part)
    const stats = statSync(path, { throwIfNoEntry: false })
    if (!stats) return void flowState.listed.add(resolve(path))
    if (rest.length === 0) found.add(path)
    else if (stats.isDirectory()) walk(path, rest, found)
    return
  }
  const expression = expressionOf(part)
  for (const entry of list(folder || '.')) {
    if (!expression.test(entry.name) || (entry.name.startsWith('.') && !part.startsWith('.'))) continue
    expectText(folder || '.', entry.name)
    const path = within(entry.name)
    if (rest.length === 0) found.add(path)
    else if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) walk(path, rest, found)
  }
}

function expressionOf(part: string): RegExp {
  let source = ''
  for (let i = 0; i < part.length; i++) {
    const char = part[i] as string
    const end = char === '[' ? part.indexOf(']', i + 2) : -1
    if (char === '*') source += '[^/]*'
    else if (char === '?') source += '[^/]'
    else if (end > 0) {
      const inside = part
        .slice(i + 1, end)
        .replace(/^!/, '^')
        .replaceAll('\\', '\\\\')
      source += `[${inside}]`
      i = end
    } else source += char.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
  }
  return new RegExp(`^${source}$`, 's')
}

function alternatives(pattern: string): string[] {
  const found = /^([^{]*)\{([^{}]*,[^{}]*)\}(.*)$/s.exec(pattern)
  if (!found) return [pattern]
  const [, before = '', inside = '', after = ''] = found
  return inside.split(',').flatMap(one => alternatives(`${before}${one}${after}`))
}
