import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Measured } from './measure.ts'

/** What was measured on this machine before, by device; in the user's cache. */
const file = (): string =>
  join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'millrace', 'devices.json')

function readAll(): Record<string, Measured> {
  try {
    return JSON.parse(readFileSync(file(), 'utf8')) as Record<string, Measured>
  } catch {
    return {}
  }
}

/** A device is known by its numbers and by what is mounted: numbers alone are given to others later. */
export function deviceKey(folder: string): string {
  const { dev } = statSync(folder)
  // As in <sys/sysmacros.h>.
  const major = (dev >> 8) & 0xfff
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00)
  const numbers = `${major}:${minor}`
  try {
    const line = readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .find(one => one.split(' ')[2] === numbers)
    return `${numbers} ${line?.split(' - ')[1]?.split(' ').slice(0, 2).join(' ') ?? ''}`.trim()
  } catch {
    return numbers
  }
}

export function remembered(folder: string): Measured | null {
  try {
    return readAll()[deviceKey(folder)] ?? null
  } catch {
    return null
  }
}

/** Not to be able to remember is no failure: it is measured again. */
export function remember(folder: string, measured: Measured): void {
  try {
    const all = { ...readAll(), [deviceKey(folder)]: measured }
    mkdirSync(dirname(file()), { recursive: true })
    const aside = `${file()}.${process.pid}`
    writeFileSync(aside, `${JSON.stringify(all, null, 2)}\n`)
    renameSync(aside, file())
  } catch {
    // A cache that cannot be written.
  }
}
