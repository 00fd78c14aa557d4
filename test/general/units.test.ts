import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseBytes, parseCount, parseDuration, parseRate } from '../../src/general/units.ts'

type Row = [input: number | string, expected: number | null]

const BYTES: Row[] = [
  [0, 0],
  [1024, 1024],
  [1.4, 1],
  ['0', 0],
  ['17', 17],
  ['17B', 17],
  ['290MB', 290e6],
  ['290 mb', 290e6],
  [' 1.5GiB ', 1.5 * 2 ** 30],
  ['1.005kB', 1005],
  ['2k', 2000],
  ['2KiB', 2048],
  ['3M', 3e6],
  ['3mib', 3 * 2 ** 20],
  ['1T', 1e12],
  ['1TiB', 2 ** 40],
  ['1PB', 1e15],
  ['1PiB', 2 ** 50],
  ['1e3', 1000],
  ['1e3MB', 1e9],
  ['', null],
  [' ', null],
  ['MB', null],
  ['-1', null],
  ['+1', null],
  ['.5GB', null],
  ['5.GB', null],
  ['1,5GB', null],
  ['1_000', null],
  ['12 apples', null],
  ['1MB/s', null],
  ['1 M B', null],
  ['0x10', null],
  ['1e-3', null],
  ['1e400', null],
  ['1e300PB', null],
  ['5constructor', null],
  ['5 __proto__', null],
  ['5 hasOwnProperty', null],
  ['Infinity', null],
  ['NaN', null],
  ['1MB\n1MB', null],
  [-1, null],
  [NaN, null],
  [Infinity, null],
]

const DURATIONS: Row[] = [
  [500, 500],
  [0.5, 0.5],
  ['500', 500],
  ['500ms', 500],
  ['30s', 30e3],
  ['1.5 sec', 1500],
  ['2 seconds', 2000],
  ['5min', 300e3],
  ['5m', 300e3],
  ['1 minute', 60e3],
  ['2h', 7200e3],
  ['2 Hours', 7200e3],
  ['1d', 86400e3],
  ['1 day', 86400e3],
  ['5 weeks', null],
  ['1h30m', null],
  ['-5s', null],
  ['', null],
  ['s', null],
  ['1e999s', null],
  ['5toString', null],
]

const COUNTS: Row[] = [
  [3, 3],
  [0, 0],
  ['3', 3],
  [' 3 ', 3],
  ['3.0', 3],
  ['1e2', 100],
  [1.5, null],
  ['1.5', null],
  ['3k', null],
  ['three', null],
  [-1, null],
  ['', null],
  [Infinity, null],
]

const RATES: Row[] = [
  [200, 200e6],
  [0.5, 5e5],
  ['200', 200e6],
  ['200MB/s', 200e6],
  ['200 MB / s', 200e6],
  ['1.5GiB/s', 1.5 * 2 ** 30],
  ['80MBps', 80e6],
  ['5B/s', 5],
  ['200MB', null],
  ['200/s', null],
  ['200MB/h', null],
  ['', null],
  ['/s', null],
  ['-3MB/s', null],
  [-3, null],
  [NaN, null],
]

const TABLES: [string, (value: number | string) => number | null, Row[]][] = [
  ['bytes', parseBytes, BYTES],
  ['a duration', parseDuration, DURATIONS],
  ['a count', parseCount, COUNTS],
  ['a rate', parseRate, RATES],
]
for (const [what, parse, rows] of TABLES) {
  for (const [input, expected] of rows) {
    const written = typeof input === 'string' ? JSON.stringify(input) : String(input)
    test(`given ${written} as ${what}, we should ${expected === null ? 'refuse it' : `read ${expected}`}`, () => {
      assert.equal(parse(input), expected)
    })
  }
}
