import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { buildPart, partFolder, sourcesOf } from './build.ts'

const part = { name: 'look', sources: sourcesOf('native/look'), makes: ['millrace-look'] }

/** The path of `millrace-look` where it has been built. */
export function lookTool(): string | null {
  try {
    const path = join(partFolder(part), 'millrace-look')
    return existsSync(path) ? path : null
  } catch {
    return null
  }
}

/** For the next time. Where it cannot be built, the plan looks at all files itself. */
export const buildLookTool = (): Promise<unknown> => buildPart(part).catch(() => undefined)
