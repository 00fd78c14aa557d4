import { readFileSync } from 'node:fs'

let version: string | null = null

export function packageVersion(): string {
  version ??= (JSON.parse(packageText()) as { version: string }).version
  return version
}

/** Built files are one folder below the package, sources two. */
function packageText(): string {
  try {
    return readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  } catch {
    return readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  }
}
