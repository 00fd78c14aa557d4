import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { expandBraces } from '../../src/stream/language/braces.ts'
import { NameIndex, Precedence } from '../../src/stream/language/names.ts'
import {
  compilePattern,
  intersects,
  matches,
  patternFault,
  regularName,
} from '../../src/stream/language/pattern.ts'

/** Straight from the definition, exponential and obviously right. */
function reference(pattern: string[], name: string[]): boolean {
  const [head, ...rest] = pattern
  if (head === undefined) return name.length === 0
  if (head === '*') return reference(rest, name) || (name.length > 0 && reference(pattern, name.slice(1)))
  const [char, ...others] = name
  if (char === undefined) return false
  if (head === '?') return reference(rest, others)
  if (head.startsWith('[!')) return !head.slice(2, -1).includes(char) && reference(rest, others)
  if (head.startsWith('[')) return head.slice(1, -1).includes(char) && reference(rest, others)
  if (head.startsWith('\\')) return head[1] === char && reference(rest, others)
  return head === char && reference(rest, others)
}

const piece = fc.constantFrom('a', 'b', '/', '*', '?', '[ab]', '[!a]', '[!b/]', '[a]', '\\*', '\\?', '\\[')
const pieces = fc.array(piece, { maxLength: 6 })
const name = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', '?', '['), maxLength: 6 })

describe('wildcards', () => {
  test('match as the definition says', () => {
    fc.assert(
      fc.property(pieces, name, (parts, text) => {
        const written = parts.join('')
        // Making names regular changes the text; what is compared is the matching.
        fc.pre(regularName(written) === written)
        assert.equal(matches(compilePattern(written), text), reference(parts, Array.from(text)))
      }),
      { numRuns: 3000 },
    )
  })

  test('two patterns meet exactly when a name exists that both match', () => {
    const names = ['']
    for (let from = 0, length = 0; length < 4; length++) {
      const end = names.length
      for (; from < end; from++) for (const char of 'ab/x') names.push(names[from]! + char)
    }
    const small = fc.array(fc.constantFrom('a', 'b', '*', '?', '[ab]', '[!a]'), { maxLength: 3 })
    fc.assert(
      fc.property(small, small, (a, b) => {
        const [left, right] = [compilePattern(a.join('')), compilePattern(b.join(''))]
        const found = names.some(text => matches(left, text) && matches(right, text))
        assert.equal(intersects(left, right), found)
        assert.equal(intersects(right, left), found)
      }),
      { numRuns: 500 },
    )
  })

  const cases: [pattern: string, name: string, expected: boolean][] = [
    ['file_*.???', 'file_A.dat', true],
    ['file_*.???', 'file_A.data', false],
    ['dir/*', 'dir/a/b/c', true],
    ['dir/*', 'dir', false],
    ['a?b', 'a/b', true],
    ['[a-c]x', 'bx', true],
    ['[!a-c]x', 'bx', false],
    ['[^a-c]x', 'dx', true],
    ['[]]x', ']x', true],
    ['[a-]x', '-x', true],
    ['[ab', '[ab', true],
    ['a\\*b', 'a*b', true],
    ['a\\*b', 'axb', false],
    ['[]-]', '-', true],
    ['?', 'é', false],
    ['??', 'é', true],
    ['é*', 'éa', true],
    ['./a//b/', 'a/b', true],
    ['*', '', true],
    ['a*a*a*a*a*a*a*a*b', 'a'.repeat(200), false],
  ]
  for (const [pattern, text, expected] of cases) {
    test(`${pattern} ${expected ? 'matches' : 'does not match'} ${text.slice(0, 20)}`, () => {
      assert.equal(matches(compilePattern(pattern), text), expected)
    })
  }

  test('a pattern without wildcards is a name, also with escapes', () => {
    assert.equal(compilePattern('a\\*b').literal, 'a*b')
    assert.equal(compilePattern('a[').literal, 'a[')
    assert.equal(compilePattern('a[b]').literal, undefined)
  })

  test('faults of a pattern are said', () => {
    assert.match(patternFault('../x')!.message, /managed directory/)
    assert.match(patternFault('a/../../x')!.message, /managed directory/)
    assert.match(patternFault('x[z-a]')!.fix, /a-z/)
    assert.match(patternFault('x\\')!.message, /backslash/)
    assert.match(patternFault('')!.message, /empty/)
    assert.match(patternFault('[a\\]]')!.message, /inside \[ \]/)
    assert.equal(patternFault('x\\\\'), undefined)
    assert.equal(patternFault('\\[a\\]'), undefined)
    assert.equal(patternFault('[a]\\*'), undefined)
    assert.equal(patternFault('[a-z0-9]*..x'), undefined)
  })
})

describe('brace lists', () => {
  const cases: [text: string, expected: string[]][] = [
    ['a{b,c}d', ['abd', 'acd']],
    ['{a,b}{1,2}', ['a1', 'a2', 'b1', 'b2']],
    ['a{b,{c,d}e}', ['ab', 'ace', 'ade']],
    ['f{1..3}', ['f1', 'f2', 'f3']],
    ['f{08..11}', ['f08', 'f09', 'f10', 'f11']],
    ['f{3..1}', ['f3', 'f2', 'f1']],
    ['f{0..10..5}', ['f0', 'f5', 'f10']],
    ['{a..c}', ['a', 'b', 'c']],
    ['a{b}c', ['a{b}c']],
    ['a{b', ['a{b']],
    ['a\\{b,c}', ['a\\{b,c}']],
    ['{a{1,2}}', ['{a1}', '{a2}']],
    ['x{,y}', ['x', 'xy']],
  ]
  for (const [text, expected] of cases) {
    test(`${text} stands for ${expected.join(' ')}`, () => assert.deepEqual(expandBraces(text), expected))
  }

  test('too many are refused, not tried', () => {
    assert.equal(expandBraces('{1..99999999}'), undefined)
    assert.equal(expandBraces('{1..999}{1..999}{1..999}'), undefined)
  })
})

describe('precedence', () => {
  const table = (...texts: string[]) =>
    new Precedence(texts.map((text, order) => ({ pattern: compilePattern(text), order, text })))

  test('the name itself comes first, however long the patterns are', () => {
    assert.equal(
      table('dir/file_long_*', 'd*', 'dir/file_long_a').find('dir/file_long_a')?.text,
      'dir/file_long_a',
    )
    assert.equal(table('ab*********', 'ab').find('ab')?.text, 'ab')
  })

  test('then the longest text', () => {
    assert.equal(table('*', 'dir/*', 'dir/a*').find('dir/abc')?.text, 'dir/a*')
    assert.equal(table('dir/a*', '*', 'dir/*').find('dir/xyz')?.text, 'dir/*')
  })

  test('then the first in the file', () => {
    assert.equal(table('a*c', 'ab*', '*bc').find('abc')?.text, 'a*c')
    assert.equal(table('*bc', 'ab*', 'a*c').find('abc')?.text, '*bc')
  })

  test('holds for any patterns', () => {
    const texts = fc.array(
      fc.array(piece, { minLength: 1, maxLength: 4 }).map(parts => parts.join('')),
      { maxLength: 6 },
    )
    fc.assert(
      fc.property(texts, name, (patterns, text) => {
        const items = patterns.map((written, order) => ({ pattern: compilePattern(written), order }))
        const found = new Precedence(items).find(text)
        const all = items.filter(item => matches(item.pattern, text))
        assert.equal(found === undefined, all.length === 0)
        if (found === undefined) return
        const exact = all.filter(item => item.pattern.literal !== undefined)
        const pool = exact.length > 0 ? exact : all
        const longest = Math.max(...pool.map(item => item.pattern.text.length))
        assert.equal(
          found,
          pool.find(item => item.pattern.text.length === longest),
        )
      }),
    )
  })
})

describe('names that cover files', () => {
  const index = new NameIndex(['dir', 'a*', 'x/y'].map(text => [compilePattern(text), text] as const))
  test('a name covers itself and what is below', () => {
    assert.deepEqual(index.covering('dir'), ['dir'])
    assert.deepEqual(index.covering('dir/deep/file'), ['dir'])
    assert.deepEqual(index.covering('dirt'), [])
    assert.deepEqual(index.covering('abc/d'), ['a*'])
  })
  test('patterns touch what they share a file with', () => {
    assert.deepEqual(index.touching(compilePattern('dir/*')), ['dir'])
    assert.deepEqual(index.touching(compilePattern('?/?')), ['a*', 'x/y'])
    assert.deepEqual(index.touching(compilePattern('q*')), [])
    assert.deepEqual(index.touchingTree(compilePattern('x')), ['x/y'])
  })
})
