// What keeping results costs, and what is gained by it: resume.mjs short|finished|files|names TASKS
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { FILE_IN, FILE_OUT, barrier, main, task, waitOn } from 'millrace'

const KILOBYTE = 'x'.repeat(1000)
const MEGABYTE = 2 ** 20

export const millisecond = task({}, n => {
  for (const end = performance.now() + 1; performance.now() < end;);
  return { n, text: KILOBYTE }
})
export const small = task({}, n => ({ n, square: n * n }))
export const file = task({ params: [FILE_IN, FILE_OUT] }, (from, path) => {
  writeFileSync(path, readFileSync(from).subarray(0, 100))
  truncateSync(path, MEGABYTE)
})
/** The same, for which the paths are texts. */
export const name = task({}, () => {})

/** Bytes that this process has read by itself. */
const bytesRead = () => Number(/rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))[1])

main(async () => {
  const [what, count] = [process.env.RESUME_WHAT, Number(process.env.RESUME_TASKS)]
  const read = bytesRead()
  const before = process.cpuUsage()
  const begin = performance.now()
  if (what === 'files' || what === 'names') {
    const call = what === 'files' ? file : name
    for (let n = 0; n < count; n++) call(`in/${n}.dat`, `out/${n}.dat`)
    await barrier()
  } else {
    const make = what === 'finished' ? small : millisecond
    const values = await waitOn(Array.from({ length: count }, (_, n) => make(n)))
    if (values.at(-1).n !== count - 1) throw new Error('the last value is wrong')
  }
  const milliseconds = performance.now() - begin
  const { user, system } = process.cpuUsage(before)
  console.log(JSON.stringify({ milliseconds, cpu: (user + system) / 1000, read: bytesRead() - read }))
})
