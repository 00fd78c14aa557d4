import assert from 'node:assert/strict'
import { test } from 'node:test'
import { programFolder, runProgram, without } from './mpi-program.ts'

const folder = programFolder('mpi-messages')

/** Both ranks know which messages there are; they are sent and received in all ways, those of a group in any order of their tags. */
const MESSAGES = `
import { mpi, main, waitOn } from 'millrace'
const TYPES = [Uint8Array, Int16Array, Int32Array, Float32Array, Float64Array, BigInt64Array]
export const exchange = mpi({ name: 'exchange', processes: 2 }, (comm, seed, groups) => {
  let state = seed
  const random = n => (state = (state * 1103515245 + 12345) % 2147483648, Math.floor(state / 65536) % n)
  let wrong = 0
  let number = 0
  for (let g = 0; g < groups; g++) {
    const from = random(2)
    const count = 1 + random(4)
    const messages = []
    for (let i = 0; i < count; i++) {
      const type = TYPES[random(TYPES.length)]
      const is = random(8)
      const length = 1 + (random(4) === 0 ? random(40) : random(4))
      const content = type === BigInt64Array ? BigInt(number % 100) : number % 100
      messages.push({ type, length, content, how: is === 0 ? 'value' : is < 3 ? 'isend' : 'send', get: random(5), tag: i })
      number++
    }
    const order = messages.map((_, i) => i)
    if (random(3) === 0) order.reverse()
    const inOrder = order[0] === 0
    if (comm.rank === from) {
      const begun = messages.map(({ type, length, content, how, tag }) => {
        const array = new type(length).fill(content)
        if (how === 'value') return comm.send({ content: String(content) }, 1 - from, tag)
        return how === 'isend' ? comm.isend(array, 1 - from, tag) : comm.send(array, 1 - from, tag)
      })
      for (const request of begun) request?.wait()
      continue
    }
    const later = []
    for (const i of order) {
      const { type, length, content, how, get, tag } = messages[i]
      if (how === 'value') {
        if (comm.recvValue(from, tag).content !== String(content)) wrong++
        continue
      }
      // Longer than the message, now and then.
      const into = new type(length + random.length * (get === 4 ? 3 : 0))
      const check = got => {
        const right = got.source === from && got.tag === tag && got.count === length && into.subarray(0, length).every(x => x === content)
        if (!right) wrong++
      }
      if (get === 0) { const request = comm.irecv(into, from, tag); later.push(() => check(request.wait())) }
      else if (get === 1) check(comm.recv(into, -1, tag))
      else if (get === 2 && inOrder && count === 1) check(comm.recv(into, from))
      else check(comm.recv(into, from, tag))
    }
    for (const one of later) one()
  }
  // What one rank sends to the other in a hurry stays in order.
  const word = new Int32Array(1)
  for (let i = 0; i < 5000; i++) {
    if (comm.rank === 0) { word[0] = i; comm.send(word, 1, 1) }
    else { comm.recv(word, 0, 1); if (word[0] !== i) wrong++ }
  }
  for (let i = 0; i < 5000; i++) {
    if (comm.rank === 0) { word[0] = i; comm.send(word, 1); comm.recv(word, 1); if (word[0] !== i + 1) wrong++ }
    else { comm.recv(word, 0); word[0]++; comm.send(word, 0) }
  }
  return wrong
})
main(async () => console.log(await waitOn(exchange(Number(process.env.SEED ?? 1), 3000))))
`

for (const kind of ['openmpi', 'mpich']) {
  test(
    `given ${kind} and messages of all sizes, sent and received in all ways, each should come where MPI would bring it`,
    {
      skip: without(kind),
    },
    () => {
      assert.equal(runProgram(folder, 'messages.mjs', MESSAGES, kind).trim(), '[ 0, 0 ]')
    },
  )
}
