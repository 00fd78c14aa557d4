import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nearest } from '../../src/general/nearest.ts'

const WORDS = ['policy', 'priority', 'nodes', 'trace', 'graph', 'fifo', 'lifo', 'fifo-data', 'dry-run', 'j']

const CASES: [written: string, expected: string | null][] = [
  ['policy', 'policy'],
  ['POLICY', 'policy'],
  ['polcy', 'policy'],
  ['plicy', 'policy'],
  ['polciy', 'policy'],
  ['poolicy', 'policy'],
  ['prioirty', 'priority'],
  ['node', 'nodes'],
  ['tarce', 'trace'],
  ['grpah', 'graph'],
  ['fif', 'fifo'],
  ['lif', 'lifo'],
  ['fifodata', 'fifo-data'],
  ['dryrun', 'dry-run'],
  ['something', null],
  ['xyz', null],
  ['wholly-different', null],
]
for (const [written, expected] of CASES) {
  test(`given '${written}', we should suggest ${expected ?? 'nothing'}`, () => {
    assert.equal(nearest(written, WORDS), expected)
  })
}

test('given no candidates, we should suggest nothing', () => {
  assert.equal(nearest('policy', []), null)
})

test('given two that are equally near, we should suggest the first', () => {
  assert.equal(nearest('cat', ['bat', 'hat']), 'bat')
})

test('given one mistake in a word of six letters or more, we should find it among others', () => {
  const word = fc.constantFrom(...WORDS.filter(({ length }) => length >= 5))
  const mistake = fc.tuple(word, fc.nat(100), fc.constantFrom('insert', 'delete', 'replace', 'swap'))
  fc.assert(
    fc.property(mistake, ([text, position, kind]) => {
      const at = position % (text.length - 1)
      const parts = {
        insert: `${text.slice(0, at)}q${text.slice(at)}`,
        delete: text.slice(0, at) + text.slice(at + 1),
        replace: `${text.slice(0, at)}q${text.slice(at + 1)}`,
        swap: text.slice(0, at) + text[at + 1] + text[at] + text.slice(at + 2),
      }
      assert.equal(nearest(parts[kind as keyof typeof parts], WORDS), text)
    }),
  )
})
