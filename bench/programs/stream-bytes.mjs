// Bytes through a bounded buffer: stream-bytes.mjs MEGABYTES BUFFER_MB FORM, in which FORM is tasks, loop or task.
import { main, task, waitOn } from 'millrace'

const [megabytes, buffer, form] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
process.env['STREAM_BUFFER'] ??= String(buffer)
const ITEM = 1_000_000

export const source = task(
  { name: 'source', bufferBytes: Number(process.env['STREAM_BUFFER']) * 1e6 },
  function* (count) {
    for (let i = 0; i < count; i++) yield new Uint8Array(ITEM).fill(i & 255)
  },
)
export const look = task({ name: 'look' }, array => array.length + (array[ITEM - 1] === array[0] ? 0 : 1))
export const lookAtAll = task(
  { name: 'lookAtAll' },
  async (/** @type {AsyncIterable<Uint8Array>} */ arrays) => {
    let sum = 0
    for await (const array of arrays) sum += array.length + (array[ITEM - 1] === array[0] ? 0 : 1)
    return sum
  },
)

main(async () => {
  await waitOn([1, 2, 3].map(() => look(new Uint8Array(ITEM))))
  const count = megabytes
  let peak = 0
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
  const start = performance.now()
  let sum = 0
  if (form === 'task') sum = await lookAtAll(source(count))
  else {
    let before = []
    for await (const array of source(count)) {
      if (form === 'loop') sum += (await waitOn(array)).length
      else before.push(look(array))
      if (before.length === 64) {
        for (const one of await waitOn(before)) sum += one
        before = []
      }
    }
    for (const one of await waitOn(before)) sum += one
  }
  const seconds = (performance.now() - start) / 1000
  clearInterval(watch)
  if (sum !== count * ITEM) throw new Error(`${sum} bytes arrived, of ${count * ITEM}`)
  const highest = process.resourceUsage().maxRSS / 1000
  console.log(
    JSON.stringify({ peakMB: Math.max(peak / 1e6, highest), gigabytesPerSecond: count / 1000 / seconds }),
  )
})
