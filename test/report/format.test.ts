import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { formatBytes, formatCount, formatDuration } from '../../src/report/format.ts'
import { shellQuote } from '../../src/general/shell-quote.ts'
import { clean, cleanLines, elide, width } from '../../src/report/text.ts'

const durations: [number, string][] = [
  [0, '0ms'],
  [0.254, '0.25ms'],
  [9.994, '9.99ms'],
  [12.4, '12ms'],
  [999.4, '999ms'],
  [999.5, '1.0s'],
  [1234, '1.2s'],
  [59_940, '59.9s'],
  [59_960, '1m00s'],
  [65_000, '1m05s'],
  [3_599_600, '1h00m'],
  [7_380_000, '2h03m'],
  [86_400_000, '1d00h'],
  [273_600_000, '3d04h'],
  [-1500, '-1.5s'],
  [NaN, '?'],
]
for (const [ms, text] of durations) test(`${ms} ms is ${text}`, () => assert.equal(formatDuration(ms), text))

const sizes: [number, string][] = [
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [1500, '1.5 kB'],
  [1000 * 999.6, '1.0 MB'],
  [290_000_000, '290 MB'],
  [1e12, '1.0 TB'],
]
for (const [bytes, text] of sizes)
  test(`${bytes} bytes are ${text}`, () => assert.equal(formatBytes(bytes), text))

test('counts are exact and grouped', () => {
  assert.equal(formatCount(1_234_567), '1,234,567')
  assert.equal(formatCount(999), '999')
})

test('a name is cut in its middle and both ends stay', () => {
  assert.equal(elide('multiply', 8, '…'), 'multiply')
  assert.equal(elide('a-very-long-name', 9, '...'), 'a-v...ame')
  assert.equal(elide('データの名前です', 9, '…'), 'データ…'.slice(0, 2) + '…です')
})

test('what is cut always fits', () => {
  const property = fc.property(
    fc.string({ unit: 'grapheme' }),
    fc.integer({ min: 0, max: 30 }),
    (name, columns) => {
      assert.ok(width(elide(clean(name), columns, '…')) <= columns)
    },
  )
  fc.assert(property, { numRuns: 200 })
})

test('control characters and colours of users do not reach the screen', () => {
  assert.equal(clean('a\u001b[2Jb\nc\u0007'), 'ab?c?')
  assert.deepEqual(cleanLines('10%\r100%\n\u001b[31mred\u001b[0m\r\n\tx\n\n'), ['100%', 'red', '    x'])
})

test('words are quoted for a shell only if they must be', () => {
  assert.equal(shellQuote('a/b-c.ts'), 'a/b-c.ts')
  assert.equal(shellQuote("it's 2"), `'it'\\''s 2'`)
  assert.equal(shellQuote(''), "''")
  assert.equal(shellQuote("it's\n\t\\ \u001b"), String.raw`$'it\'s\n\t\\ \x1b'`)
})
