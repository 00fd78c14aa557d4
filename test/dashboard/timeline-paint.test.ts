import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TileAnswer } from '../../src/report/dashboard/protocol.ts'
import { BUCKETS, PARTS, bucketMs, tileMs } from '../../src/report/dashboard/state/tiles.ts'

/** As text: it is checked with the types of a browser, which tests do not have. */
const drawing: string = '../../dashboard/timeline/paint.ts'
const { paint } = (await import(drawing)) as { paint(context: unknown, scene: unknown): void }

const LEVEL = 6
const GUTTER = 60
const WHOLE = BUCKETS * PARTS
const [OK, FAILED] = [0, 5]

/** What is written on a canvas, and how many crosses are drawn. */
function painted(tiles: readonly TileAnswer[]): { texts: string[]; crosses: number } {
  const texts: string[] = []
  let crosses = 0
  const context = new Proxy({} as Record<string, unknown>, {
    get: (target, name) =>
      name === 'fillText'
        ? (text: string) => texts.push(text)
        : name === 'stroke'
          ? () => crosses++
          : name === 'measureText'
            ? () => ({ width: 10 })
            : (target[String(name)] ?? (() => {})),
    set: (target, name, value) => {
      target[String(name)] = value
      return true
    },
  })
  const scene = {
    section: {
      end: 2 * tileMs(LEVEL),
      layout: 1,
      revision: 1,
      rows: [{ node: 0, lane: 0, isIo: false }],
      nodes: ['n1'],
      kinds: [],
      open: [],
    },
    names: new Map([[0, 'long']]),
    tiles,
    span: { from: 0, to: 2 * tileMs(LEVEL) },
    gutter: GUTTER,
    width: GUTTER + 2 * BUCKETS * bucketMs(LEVEL),
    height: 100,
    scrollTop: 0,
    row: null,
    task: null,
    colours: { ink: '#000', faint: '#000', line: '#000', back: '#000', accent: '#000', stripe: '#000' },
  }
  paint(context, scene)
  return { texts: texts.filter(text => text.includes('#')), crosses }
}

const tile = (index: number, row: number[]): TileAnswer => ({
  level: LEVEL,
  index,
  group: 0,
  layout: 1,
  isComplete: true,
  rows: [row],
})

/** A slice of task 7 that goes from 40 buckets before the end of the first tile to 40 after the start of the second. */
const cut = (outcome: number): TileAnswer[] => [
  tile(0, [WHOLE - 40 * PARTS, 40 * PARTS, 0, outcome, 7, 255]),
  tile(1, [0, 40 * PARTS, 0, outcome, 7, 255]),
]

test('a slice that two tiles share has one name, with the room of both', () => {
  assert.deepEqual(painted(cut(OK)), { texts: ['long#7'], crosses: 0 })
})

test('a failed slice has one cross and its name, however many tiles it crosses', () => {
  assert.deepEqual(painted(cut(FAILED)), { texts: ['long#7'], crosses: 1 })
})

test('two attempts of a task on one lane have a name each', () => {
  const row = [0, 60 * PARTS, 0, FAILED, 7, 255, 100 * PARTS, 60 * PARTS, 0, FAILED, 7, 255]
  assert.deepEqual(painted([tile(0, row)]), { texts: ['long#7', 'long#7'], crosses: 2 })
})

test('a narrow failure has its cross and no name', () => {
  assert.deepEqual(painted([tile(0, [0, 12 * PARTS, 0, FAILED, 7, 255])]), { texts: [], crosses: 1 })
})
