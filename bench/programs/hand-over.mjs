// 100 MB from task to task: hand-over.mjs shared|moved|two
import { IN, INOUT, main, shared, task } from 'millrace'
import { LENGTH, check, clock, fill } from './clock.mjs'

const REPETITIONS = 15

export const write = task({ name: 'write', params: [INOUT, IN] }, (array, mark) => {
  if (typeof array !== 'number') array[0] = array[LENGTH - 1] = mark
  return clock()
})

export const make = task({ name: 'make', returns: 2 }, mark => {
  const array = new Float64Array(LENGTH)
  fill(array, mark)
  return [array, clock()]
})

export const read = task({ name: 'read' }, (array, mark) => {
  const begun = clock()
  check(array, mark)
  return begun
})

/** The tasks of `shared` without the array. */
export const writeNothing = task({ name: 'writeNothing' }, () => clock())
export const readNothing = task({ name: 'readNothing' }, () => clock())

async function throughShared() {
  const array = shared(Float64Array, LENGTH)
  fill(array, -1)
  const handOver = []
  const whole = []
  const empty = []
  for (let mark = 0; mark < REPETITIONS; mark++) {
    const start = clock()
    const written = write(array, mark)
    const begun = await read(array, mark)
    whole.push(clock() - start)
    handOver.push(begun - (await written))
    const emptyStart = clock()
    await readNothing(writeNothing())
    empty.push(clock() - emptyStart)
  }
  return { handOver, whole, empty }
}

async function throughPlain(readers) {
  const handOver = []
  const last = []
  for (let mark = 0; mark < REPETITIONS; mark++) {
    const [array, made] = make(mark)
    const reads = Array.from({ length: readers }, () => read(array, mark))
    const begun = []
    for (const one of reads) begun.push(await one)
    begun.sort((a, b) => a - b)
    const ended = await made
    handOver.push(begun[0] - ended)
    last.push(begun.at(-1) - ended)
  }
  return { handOver, last }
}

main(async () => {
  const how = process.argv[2]
  const result = how === 'shared' ? await throughShared() : await throughPlain(how === 'two' ? 2 : 1)
  console.log(JSON.stringify(result))
})
