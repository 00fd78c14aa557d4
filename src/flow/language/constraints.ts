import { MillraceError } from '../../core/errors.ts'

const KEY = Symbol.for('millrace.flow.constraints')
const holder = globalThis as unknown as Record<symbol, Map<string, string> | undefined>
const constraints = (holder[KEY] ??= new Map())

/**
 * What wildcards of these names stand for in all rules that follow, as regular expressions. A constraint that is written
 * in a path, `{year:[0-9]+}`, comes before it.
 *
 *     constrain({ sample: '[A-Z][0-9]+', read: '[12]' })
 */
export function constrain(given: Readonly<Record<string, string | RegExp>>): void {
  for (const [name, constraint] of Object.entries(given)) {
    const source = constraint instanceof RegExp ? constraint.source : constraint
    try {
      if (typeof source !== 'string') throw new TypeError(`it is ${typeof source}`)
      void new RegExp(source)
    } catch (cause) {
      throw new MillraceError('MR_FLOW_RULE', `the constraint of {${name}} is not a regular expression`, {
        hint: "Write it as a text: constrain({ sample: '[A-Z]+' }).",
        cause,
      })
    }
    constraints.set(name, source)
  }
}

export const constraintOf = (name: string): string | null => constraints.get(name) ?? null
