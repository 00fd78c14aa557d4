// Values that tasks release one by one: ready-calls.mjs GENERATORS VALUES FORM, in which FORM is ready or yield.
import { main, ready, task } from 'millrace'

const [generators, values, form] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
// Threads do not see the arguments of the program, and need the number of values to define the task.
process.env['READY_VALUES'] ??= String(values / generators)
const EACH = Number(process.env['READY_VALUES'])

export const releases = task({ name: 'releases', returns: EACH }, start => {
  for (let i = 0; i < EACH; i++) ready(i, start + i)
})
export const yields = task({ name: 'yields' }, function* (start) {
  for (let i = 0; i < EACH; i++) yield start + i
})

async function sumOf(stream) {
  let sum = 0
  for await (const value of stream) sum += await value
  return sum
}

async function round(run) {
  const start = performance.now()
  const starts = Array.from({ length: generators }, (_, i) => i * 10)
  let sum = 0
  if (form === 'ready') {
    const futures = starts.flatMap(one => releases(one))
    for (const future of futures) sum += await future
  } else sum = (await Promise.all(starts.map(one => sumOf(yields(one))))).reduce((a, b) => a + b, 0)
  const seconds = (performance.now() - start) / 1000
  const expected = starts.reduce((all, one) => all + one * EACH + (EACH * (EACH - 1)) / 2, 0)
  if (sum !== expected) throw new Error(`the sum is ${sum} and not ${expected}, in round ${run}`)
  return (seconds * 1e6) / (generators * EACH)
}

main(async () => {
  await round(0)
  const rounds = []
  for (let i = 1; i <= 5; i++) rounds.push(await round(i))
  console.log(JSON.stringify({ microseconds: rounds }))
})
