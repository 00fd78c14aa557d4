import { readFileSync } from 'node:fs'

let version: string | null = null

export function packageVersion(): string {
  if (version === null) {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
    version = (JSON.parse(text) as { version: string }).version
  }
  return version
}
