/** What is computed of web pages: plain functions, which tasks and the sequential run share. */
import type { WebRecord } from './archive.ts'

/** Words, joined by spaces, and a number for each: to pass one text and one array takes a fraction of the time of a Map. */
export interface Numbers {
  words: string
  numbers: Uint32Array
}

/** How often each word occurs on a page. */
export interface Page {
  uri: string
  length: number
  counts: Numbers
}

/** How many pages have a word, for each word of some pages. */
export interface Pages {
  pages: number
  having: Numbers
}

/** The words that tell a page from the others, the most telling first. */
export interface Scored {
  uri: string
  length: number
  top: [word: string, score: number][]
}

export function count({ uri, body }: WebRecord): Page {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('latin1')
  const counts = new Map<string, number>()
  let length = 0
  for (const [word] of text.matchAll(/[a-z]{3,}/g)) {
    add(counts, word, 1)
    length++
  }
  return { uri, length, counts: packed(counts) }
}

export function wordsOf(pages: readonly Page[]): Pages {
  const having = new Map<string, number>()
  for (const { counts } of pages) for (const word of unpacked(counts).keys()) add(having, word, 1)
  return { pages: pages.length, having: packed(having) }
}

export function addPages(a: Pages, b: Pages): Pages {
  const having = unpacked(a.having)
  for (const [word, pages] of unpacked(b.having)) add(having, word, pages)
  return { pages: a.pages + b.pages, having: packed(having) }
}

/** Term frequency times inverse document frequency, for the words of each page. */
export function score(pages: readonly Page[], all: Pages): Scored[] {
  const having = unpacked(all.having)
  return pages.map(({ uri, length, counts }) => {
    const scores: [string, number][] = []
    for (const [word, times] of unpacked(counts))
      scores.push([word, (times / length) * Math.log(all.pages / (having.get(word) as number))])
    scores.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    return { uri, length, top: scores.slice(0, 10) }
  })
}

const add = (to: Map<string, number>, word: string, number: number): void => {
  to.set(word, (to.get(word) ?? 0) + number)
}

const packed = (map: ReadonlyMap<string, number>): Numbers => ({
  words: [...map.keys()].join(' '),
  numbers: Uint32Array.from(map.values()),
})

const unpacked = ({ words, numbers }: Numbers): Map<string, number> =>
  new Map(words.split(' ').map((word, i) => [word, numbers[i] as number]))
