import { pathToFileURL } from 'node:url'
import { modulePath, taskModules } from '../../model/definition.ts'
import { clockOrigin } from '../threads/protocol.ts'
import type { RankFacts } from './local-site.ts'

/** What ranks on the machine of the program have to know of it. `now`: milliseconds since the run began. */
export function rankFacts(logs: string | null, now: number): RankFacts {
  const entry = process.argv[1] ? pathToFileURL(process.argv[1]).href : null
  const modules = [...taskModules()]
  const all = entry ? [...modules, entry] : modules
  return {
    modules,
    entry,
    typescript: all.some(module => /\.[cm]?tsx?$/.test(modulePath(module))),
    logs,
    startedAt: clockOrigin() + performance.now() - now,
    cwd: process.cwd(),
    moduleRoot: null,
  }
}
