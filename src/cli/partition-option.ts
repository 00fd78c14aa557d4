import type { OptionSpec } from './spec.ts'

// The names are repeated here, because the module that owns them starts programs; a test compares them.
export const PARTITION_NAMES = ['auto', 'greedy', 'gpmetis'] as const

/** Of `make` and `simulate`. */
export const PARTITION: OptionSpec = {
  name: 'partition',
  value: '[HOW]',
  kind: 'choice',
  choices: PARTITION_NAMES,
  isRare: true,
  help: ['divide the graph among nodes before the start:', 'few bytes between nodes; auto, greedy, gpmetis'],
}
