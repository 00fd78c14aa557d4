// cluster.mjs WHAT NODES COUNT: what is measured of a run on several nodes, or on this machine where NODES is `here`.
// flat: empty tasks per second. chain: milliseconds per task that waits for the one before. true: milliseconds per /bin/true.
// start: milliseconds from the start of this process to the first result. large: milliseconds to read 100 MB that another task
// made. other: the same on another node. spread: by one task on each of four nodes. wide: COUNT MiB by one
// task on each of eight other nodes; single: on one. hops: a chain in which each task is on the other of two nodes. kill: seconds for tasks of
// 50 ms, of which one node is killed at the start. wasted: the share of attempts at COUNT tasks of 5 s that were cut off, in percent. Prints { value }.
import { appendFileSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { configure, command, main, task, waitOn, barrier } from 'millrace'

const [what = 'flat', nodes = 'here', count = '20000'] = process.argv.slice(2)
const n = Number(count)
export const empty = task({ name: 'empty' }, () => undefined)
export const next = task({ name: 'next' }, x => x + 1)
export const who = task({ name: 'who' }, () => process.pid)
export const make = task({ name: 'make' }, size => new Float64Array(size).fill(1))
export const read = task({ name: 'read' }, array => array[array.length - 1])
export const makeOn1 = task({ name: 'makeOn1', tags: ['n1'] }, size => new Float64Array(size).fill(1))
export const readOn1 = task({ name: 'readOn1', tags: ['n1'] }, array => array[array.length - 1])
export const readOn2 = task({ name: 'readOn2', tags: ['n2'] }, array => array[array.length - 1])
export const readOn3 = task({ name: 'readOn3', tags: ['n3'] }, array => array[array.length - 1])
export const readOn4 = task({ name: 'readOn4', tags: ['n4'] }, array => array[array.length - 1])
export const readOn5 = task({ name: 'readOn5', tags: ['n5'] }, array => array[array.length - 1])
export const readOn6 = task({ name: 'readOn6', tags: ['n6'] }, array => array[array.length - 1])
export const readOn7 = task({ name: 'readOn7', tags: ['n7'] }, array => array[array.length - 1])
export const readOn8 = task({ name: 'readOn8', tags: ['n8'] }, array => array[array.length - 1])
export const readOn9 = task({ name: 'readOn9', tags: ['n9'] }, array => array[array.length - 1])
export const nextOn1 = task({ name: 'nextOn1', tags: ['n1'] }, x => x + 1)
export const nextOn2 = task({ name: 'nextOn2', tags: ['n2'] }, x => x + 1)
export const wait = task({ name: 'wait' }, ms => {
  const end = performance.now() + ms
  while (performance.now() < end);
})
export const noted = task({ name: 'noted' }, async (i, log) => {
  const begun = Date.now()
  appendFileSync(log, `begun ${i} ${begun}\n`)
  await new Promise(go => setTimeout(go, 5000))
  appendFileSync(log, `ended ${i} ${begun}\n`)
})
export const run = command({ name: 'true', params: [] }, () => ['/bin/true'])

configure({ nodes, progress: 'none' })
const eight = [readOn2, readOn3, readOn4, readOn5, readOn6, readOn7, readOn8, readOn9]

const measure = {
  async flat() {
    await waitOn(Array.from({ length: 2000 }, () => empty()))
    const start = performance.now()
    const all = Array.from({ length: n }, () => empty())
    await waitOn(all)
    return n / ((performance.now() - start) / 1000)
  },
  async chain() {
    await waitOn(next(0))
    const start = performance.now()
    let last = next(0)
    for (let i = 1; i < n; i++) last = next(last)
    await waitOn(last)
    return (performance.now() - start) / n
  },
  async hops() {
    await waitOn([nextOn1(0), nextOn2(0)])
    const start = performance.now()
    let last = nextOn1(0)
    for (let i = 1; i < n; i++) last = i % 2 ? nextOn2(last) : nextOn1(last)
    await waitOn(last)
    return (performance.now() - start) / n
  },
  async true() {
    for (let i = 0; i < 20; i++) run()
    await barrier()
    const start = performance.now()
    for (let i = 0; i < n; i++) run()
    await barrier()
    return (performance.now() - start) / n
  },
  async start() {
    await waitOn(empty())
    return performance.now()
  },
  /** The share of attempts that did not end: each counts as if it had been cut off at its very end. */
  async wasted() {
    const log = resolve('begun.log')
    await waitOn(Array.from({ length: n }, (_, i) => noted(i, log)))
    const lines = readFileSync(log, 'utf8').trim().split('\n')
    const begun = lines.filter(line => line.startsWith('begun')).length
    const ended = lines.filter(line => line.startsWith('ended')).length
    if (ended < n) throw new Error(`${ended} of ${n} tasks ended`)
    return ((begun - ended) / begun) * 100
  },
  async large() {
    const array = make(12_500_000)
    await waitOn(read(array))
    const second = make(12_500_000)
    const start = performance.now()
    await waitOn(read(second))
    return performance.now() - start
  },
  /** The median of three: the first transfer also makes the connection. */
  async between(readers, size = 12_500_000, times = 3) {
    const values = []
    for (let i = 0; i < times; i++) {
      const array = makeOn1(size)
      await waitOn([readOn1(array), ...readers.map(read => read(new Float64Array(1)))])
      const start = performance.now()
      await waitOn(readers.map(read => read(array)))
      values.push(performance.now() - start)
    }
    return values.sort((a, b) => a - b)[times >> 1]
  },
  other: () => measure.between([readOn2]),
  spread: () => measure.between([readOn2, readOn3, readOn4]),
  single: () => measure.between([readOn2], n * 2 ** 17, 1),
  wide: () => measure.between(eight, n * 2 ** 17, 1),
  async kill() {
    const [victim] = await waitOn([who(), who()])
    const start = performance.now()
    const all = Array.from({ length: n }, () => wait(50))
    if (nodes !== 'here' && nodes !== 'local:1x1') setTimeout(() => process.kill(victim, 'SIGKILL'), 100)
    await waitOn(all)
    return (performance.now() - start) / 1000
  },
}

main(async () => {
  const value = await measure[what]()
  console.log(JSON.stringify({ value }))
})
