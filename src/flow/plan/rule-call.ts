import { MillraceError } from '../../core/errors.ts'
import type { Rule } from '../language/registry.ts'
import type { Wildcards } from '../language/pattern.ts'
import type { Parameters, RuleContext } from '../language/types.ts'

const KEYS = ['out', 'in', 'wildcards', 'params', 'signal'] as const

/** Where a name ends up that the context of a rule does not have: only wrong names pay for it. */
const unknownNames = new Proxy(Object.create(null) as object, {
  get(_, key, receiver) {
    if (typeof key === 'symbol' || key === 'then') return undefined
    if (key in Object.prototype) return Object.prototype[key as keyof object]
    throw unknownName(key, receiver as RuleCall)
  },
})

/** What the function of a rule is called with. */
export class RuleCall implements RuleContext {
  readonly out: unknown
  readonly in: unknown
  readonly wildcards: Readonly<Record<string, string>>
  readonly params: Parameters
  readonly #rule: Rule
  readonly #signal: () => AbortSignal

  constructor(
    rule: Rule,
    files: { out: unknown; in: unknown },
    wildcards: Wildcards,
    params: Parameters,
    signal: () => AbortSignal,
  ) {
    this.#rule = rule
    this.out = files.out
    this.in = files.in
    this.wildcards = wildcards as Record<string, string>
    this.params = params
    this.#signal = signal
  }

  /** Few ask for it, and making one takes longer than the rest of the call. */
  get signal(): AbortSignal {
    return this.#signal()
  }

  static ruleOf(call: RuleCall): Rule {
    return call.#rule
  }
}

Object.setPrototypeOf(RuleCall.prototype, unknownNames)

function unknownName(key: string, call: RuleCall): MillraceError {
  const rule = RuleCall.ruleOf(call)
  const place = Object.hasOwn(call.wildcards, key)
    ? `'${key}' is a wildcard: write ({ wildcards }) => … wildcards.${key}`
    : Object.hasOwn(call.params, key)
      ? `'${key}' is a parameter: write ({ params }) => … params.${key}`
      : `it gets one object with ${KEYS.join(', ')}`
  return new MillraceError('MR_FLOW_RULE', `the function of rule ${rule.name} asks for '${key}'; ${place}`, {
    hint: `The rule is at ${rule.site}.`,
  })
}
