/** Programs of newcomers, in JavaScript where TypeScript is not the point: it loads sooner. */

export const squares = (annotation = ''): string => `
import { task, main, waitOn } from 'millrace'
export const square = task({ name: 'square' }, (x${annotation}) => x * x)
main(async () => {
  console.log(JSON.stringify(process.argv.slice(2)))
  console.log((await waitOn([1, 2, 3].map(x => square(x)))).join(' '))
})
`

export const failing = `
import { task, main, waitOn } from 'millrace'
export const double = task({ name: 'double' }, x => x * 2)
export const check = task({ name: 'check', retries: 1 }, x => {
  console.log('looking at ' + x)
  throw new RangeError(x + ' is too large')
})
main(async () => { await waitOn(check(double(21))) })
`

/** The order in which tasks start, when all become ready at once. */
export const ordered = `
import { task, main, waitOn } from 'millrace'
export const gate = task({ name: 'gate' }, () => 0)
export const step = task({ name: 'step' }, (open, x) => x)
main(async () => {
  const open = gate()
  await waitOn([1, 2, 3, 4].map(x => step(open, x)))
})
`

/** Starts two tasks that wait for the file \`go\`, and two that never get a CPU before that. */
export const waiting = `
import { existsSync } from 'node:fs'
import { task, main, barrier } from 'millrace'
export const wait = task({ name: 'wait' }, async x => {
  console.log('began ' + x + '.')
  while (!existsSync('go')) await new Promise(resolve => setTimeout(resolve, 20))
  console.log('ended ' + x + '.')
})
main(async () => {
  for (const x of [1, 2, 3, 4]) wait(x)
  await barrier()
})
`
