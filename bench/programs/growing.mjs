// Each task pushes one number to a list: growing.mjs ELEMENTS PUSHES, where the list has so many ELEMENTS at first
import { IN, INOUT, main, task, waitOn } from 'millrace'
import { warmUp } from './warm-up.mjs'

export const push = task({ name: 'push', params: [INOUT, IN] }, (list, x) => void list.push(x))

const [elements, pushes] = process.argv.slice(2).map(Number)

async function round(count) {
  const list = Array.from({ length: elements }, (_, i) => i)
  for (let i = 0; i < count; i++) push(list, i)
  await waitOn(list)
  if (list.length !== elements + count || list.at(-1) !== count - 1)
    throw new Error(`${list.length} elements`)
}

main(async () => {
  await round(warmUp(pushes))
  const start = performance.now()
  await round(pushes)
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000 }))
})
