import type { Definition } from '../../model/definition.ts'
import type { Rule } from '../language/registry.ts'

/** A rule as the definition of a command, with what only those know who run it. */
export const ruleDefinition = (
  rule: Rule,
  how: Pick<Definition, 'options' | 'timeout' | 'variants' | 'command'>,
): Definition => ({
  key: `flow#${rule.number}`,
  name: rule.name,
  unnamed: false,
  form: 'command',
  module: String(rule.site),
  params: null,
  readsOnly: false,
  returns: 0,
  stream: null,
  kind: null,
  ...how,
})
