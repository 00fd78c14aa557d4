import type { Definition } from '../../model/definition.ts'
import type { RuleOptions } from '../language/types.ts'
import { valueFor } from '../plan/work.ts'
import type { Work } from '../plan/work.ts'

/** What a rule can ask of its node and storage by a function of the wildcards. */
const PER_TASK = ['cpus', 'memory', 'tags', 'bandwidth', 'size'] as const
const FIXED = ['io', 'storage'] as const

type Demands = Pick<Definition['options'], (typeof PER_TASK)[number] | (typeof FIXED)[number]>

/** Whether tasks of the rule may ask for different things. */
export const demandVaries = (options: RuleOptions): boolean =>
  PER_TASK.some(name => typeof options[name] === 'function')

/** What a rule asks for. Without wildcards, what is a function of them is left out. */
export function demandsOf(options: RuleOptions, wildcards: Work['wildcards'] | null): Demands {
  const demands: Record<string, unknown> = {}
  for (const name of PER_TASK) {
    const wish = options[name]
    if (wish === undefined || (typeof wish === 'function' && !wildcards)) continue
    demands[name] = wildcards ? valueFor<unknown>(wish, wildcards) : wish
  }
  for (const name of FIXED) if (options[name] !== undefined) demands[name] = options[name]
  return demands as Demands
}

/** The wishes as text, for comparison. */
export const demandText = (options: RuleOptions): string =>
  JSON.stringify([
    ...PER_TASK.map(name => (typeof options[name] === 'function' ? 'varies' : [options[name]])),
    ...FIXED.map(name => options[name]),
  ])
