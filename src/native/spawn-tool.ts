import { join } from 'node:path'
import { buildPart, builtPart, sourcesOf } from './build.ts'
import type { Part } from './build.ts'

const TOOL = 'millrace-spawn'

const part = (sources: string): Part => ({ name: 'spawn', sources, makes: [TOOL] })

/** The path of `millrace-spawn`, built if it is not there yet. */
export const spawnTool = async (sources = sourcesOf('native')): Promise<string> =>
  join(await buildPart(part(sources)), TOOL)

/** The same if it is there. */
export function builtSpawnTool(): string | null {
  const folder = builtPart(part(sourcesOf('native')))
  return folder === null ? null : join(folder, TOOL)
}
