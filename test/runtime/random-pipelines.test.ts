// Random pipelines of commands, each file with rules of its own, against what the steps give one after the other. There
// are more steps than CPUs, so a reader that held one while it waits would stop the rest.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { stream, waitOnFile } from 'millrace'

import { begin, both } from '../fixtures/commands.ts'
import { toolsOrReason } from '../stream/support.ts'
import { temporaryFolder } from './embedded.ts'

const { skip } = await toolsOrReason()
const folder = temporaryFolder()

const rules = [
  undefined,
  { commit: 'on_close' },
  { commit: 'on_close', fire: 'no_update' },
  { fire: 'no_update' },
] as const

interface Step {
  /** How far back the two files lie that it reads. */
  a: number
  b: number
  rule: number
  /** Milliseconds that it rests before and after its first line. */
  before: number
  after: number
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    a: fc.nat(3),
    b: fc.nat(7),
    rule: fc.nat(rules.length - 1),
    before: fc.nat(30),
    after: fc.nat(30),
  }),
  { minLength: 3, maxLength: 9 },
)

const expected = (pipeline: readonly Step[]): string[] => {
  const texts: string[] = []
  for (const [i, { a, b }] of pipeline.entries()) {
    const inputs =
      i === 0 ? '' : (texts[Math.max(0, i - 1 - a)] ?? '') + (texts[Math.max(0, i - 1 - b)] ?? '')
    texts.push(`begin ${i}\n${inputs}end ${i}\n`)
  }
  return texts
}

test('any pipeline gives what its steps give one after the other', { skip, timeout: 300_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(steps, async pipeline => {
      const at = mkdtempSync(join(folder, 'p'))
      const path = (i: number): string => join(at, String(i))
      for (const [i, { a, b, rule, before, after }] of pipeline.entries()) {
        const out = rules[rule] === undefined ? path(i) : stream(path(i), rules[rule])
        const rest = (ms: number): string => `sleep 0.0${String(ms).padStart(2, '0')}`
        const [first, last] = [`${rest(before)}; echo begin ${i}; ${rest(after)}`, `echo end ${i}`]
        if (i === 0) begin(out, `{ ${first}; ${last}; } > "$0"`)
        else {
          const [one, two] = [path(Math.max(0, i - 1 - a)), path(Math.max(0, i - 1 - b))]
          both(one, two, out, `{ ${first}; cat "$0" "$1" 2>&1; ${last}; } > "$2"`)
        }
      }
      for (const [i, text] of expected(pipeline).entries())
        assert.equal(readFileSync(await waitOnFile(path(i)), 'utf8'), text, `file ${i}`)
    }),
    { numRuns: Number(process.env['PIPELINES'] ?? 8) },
  )
})
