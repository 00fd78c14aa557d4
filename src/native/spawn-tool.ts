import { join } from 'node:path'
import { buildPart, sourcesOf } from './build.ts'

/** The path of `millrace-spawn`, built if it is not there yet. */
export async function spawnTool(sources = sourcesOf('native')): Promise<string> {
  const folder = await buildPart({ name: 'spawn', sources, makes: ['millrace-spawn'] })
  return join(folder, 'millrace-spawn')
}
