import type { Definition } from '../../model/definition.ts'

/** The modules that have the code of a task: its own, and those of its further versions. */
export const modulesOf = ({ module, variants }: Definition): string[] => [
  ...new Set([module, ...variants.map(variant => variant.module)].filter(one => one !== '')),
]
