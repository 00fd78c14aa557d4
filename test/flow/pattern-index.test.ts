import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PatternIndex } from '../../src/flow/language/pattern-index.ts'
import { Pattern } from '../../src/flow/language/pattern.ts'
import type { Rule } from '../../src/flow/language/registry.ts'

const part = fc.constantFrom('', 'a', 'b', 'ab', 'a/', '.x')
const pattern = fc
  .tuple(part, fc.constantFrom('{n}', '{n}/{m}', '{n:.+}'), part)
  .map(parts => new Pattern(parts.join('')))
const path = fc.array(fc.constantFrom('a', 'b', '/', '.x'), { minLength: 1 }).map(parts => parts.join(''))

test('an index of patterns leaves out none that matches, and keeps their order', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(pattern, { minLength: 1, maxLength: 2 }), { maxLength: 40 }),
      path,
      (all, one) => {
        const rules = all.map(
          (patterns, number) =>
            ({ number, outputs: patterns.map(made => ({ pattern: made })) }) as unknown as Rule,
        )
        const index = new PatternIndex()
        for (const rule of rules) index.add(rule)
        const matches = (rule: Rule): boolean =>
          rule.outputs.some(output => output.pattern.match(one) !== null)
        assert.deepEqual(index.candidates(one).filter(matches), rules.filter(matches))
        const kept = rules.slice(0, rules.length / 2)
        index.keepFirst(kept.length)
        assert.deepEqual(index.candidates(one).filter(matches), kept.filter(matches))
      },
    ),
  )
})
