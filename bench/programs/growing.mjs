// Each task adds one element to a list, a map or a set: growing.mjs ELEMENTS ADDED [KIND]. ELEMENTS are there at first
import { IN, INOUT, main, task, waitOn } from 'millrace'
import { warmUp } from './warm-up.mjs'

export const push = task({ name: 'push', params: [INOUT, IN] }, (list, x) => void list.push(x))

const object = id => ({ id, name: `n${id}` })
export const pushObject = task(
  { name: 'pushObject', params: [INOUT, IN] },
  (list, x) => void list.push(object(x)),
)
export const put = task({ name: 'put', params: [INOUT, IN] }, (map, x) => void map.set(x, x))
export const add = task({ name: 'add', params: [INOUT, IN] }, (set, x) => void set.add(x))

/** How each is made of whole numbers, and extended. */
const KINDS = {
  numbers: [numbers => numbers, push],
  objects: [numbers => numbers.map(object), pushObject],
  map: [numbers => new Map(numbers.map(x => [x, x])), put],
  set: [numbers => new Set(numbers), add],
}

const [elements, pushes] = process.argv.slice(2).map(Number)
const [make, extend] = KINDS[process.argv[4] ?? 'numbers']

async function round(count) {
  const list = make(Array.from({ length: elements }, (_, i) => i))
  for (let i = 0; i < count; i++) extend(list, elements + i)
  await waitOn(list)
  const size = list.size ?? list.length
  if (size !== elements + count) throw new Error(`${size} elements`)
}

main(async () => {
  await round(warmUp(pushes))
  const start = performance.now()
  await round(pushes)
  console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000 }))
})
