// A random program and a small workflow of files, the same for each seed. It prints a line that depends on all results.
import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const {
  task,
  command,
  main,
  waitOn,
  barrier,
  IN,
  INOUT,
  COMMUTATIVE,
  FILE_IN,
  FILE_OUT,
  FILE_INOUT,
  ...more
} = await import(pathToFileURL(process.env.MILLRACE_INDEX).href)
const { DIR_IN, DIR_OUT, shared } = more
const [seed = '1', folder = '.', busy = '0'] = process.argv.slice(2)

const spin = ms => {
  const end = performance.now() + ms
  while (performance.now() < end);
}
export const add = task({ name: 'add' }, (a, b, ms) => {
  spin(ms)
  return (a * 31 + b) % 1_000_003
})
export const grow = task({ name: 'grow' }, (n, value) => new Float64Array(n).fill(value % 997))
export const turn = task({ name: 'turn', params: [IN] }, array => {
  spin(5)
  return array.map(one => (one * 7 + 1) % 65_521)
})
export const total = task(
  { name: 'total', params: [IN] },
  array => array.reduce((x, y) => x + y, 0) % 1_000_003,
)
export const bump = task({ name: 'bump', params: [INOUT, IN] }, (array, by) => {
  spin(3)
  for (let i = 0; i < array.length; i++) array[i] = (array[i] * 3 + by) % 65_521
})
export const count = task({ name: 'count', params: [COMMUTATIVE] }, counts => {
  spin(2)
  counts[0]++
})
export const outer = task({ name: 'outer' }, async n => {
  const all = []
  for (let i = 0; i < n; i++) all.push(inner(i))
  let sum = 0
  for (const one of all) sum += await one
  return sum
})
export const inner = task({ name: 'inner' }, i => {
  spin(4)
  return i * i
})
export const values = task({ name: 'values' }, function* (n) {
  for (let i = 0; i < n; i++) {
    spin(1)
    yield i
  }
})
export const taken = task({ name: 'taken' }, async stream => {
  let sum = 0
  for await (const value of stream) sum += value
  return sum
})
export const image = task({ name: 'image', params: [IN, FILE_OUT] }, (i, path) => {
  spin(5)
  writeFileSync(path, `${i} `.repeat(2000))
})
export const project = command({ name: 'project', params: [FILE_IN, FILE_OUT], stdout: 1 }, path => [
  'sh',
  '-c',
  'sleep 0.02; tr 0-9 a-j < "$0"',
  path,
])
export const difference = command(
  { name: 'difference', params: [FILE_IN, FILE_IN, FILE_OUT], stdout: 2 },
  (a, b) => ['sh', '-c', 'cat "$0" "$1" | cksum', a, b],
)
export const fit = task({ name: 'fit', params: [FILE_IN, FILE_OUT] }, (from, to) => {
  writeFileSync(to, `fit ${readFileSync(from, 'utf8')}`)
})
export const note = task({ name: 'note', params: [FILE_INOUT, IN] }, (path, text) => {
  spin(3)
  appendFileSync(path, text)
})
export const pack = task({ name: 'pack', params: [FILE_IN, DIR_OUT] }, (from, to) => {
  const text = readFileSync(from, 'utf8')
  mkdirSync(join(to, 'inner'))
  for (let i = 0; i < 5; i++) writeFileSync(join(to, 'inner', `${i}`), text.slice(0, 100 * i))
})
export const lengths = task({ name: 'lengths', params: [DIR_IN] }, from =>
  readdirSync(join(from, 'inner')).map(name => readFileSync(join(from, 'inner', name)).length),
)
/** Numbers that look random and are the same for each seed. */
function generator(from) {
  let state = (from * 2654435761) >>> 0 || 1
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}

main(async () => {
  const random = generator(Number(seed))
  const pick = n => Math.floor(random() * n)
  mkdirSync(folder, { recursive: true })
  const numbers = [add(1, 2, 1)]
  const arrays = []
  const memory = shared(Int32Array, 64)
  const own = new Float64Array(9000)
  const counts = new Int32Array(1)
  const sums = []
  let counted = 0
  for (let i = 0; i < 80; i++) {
    const one = () => numbers[pick(numbers.length)]
    switch (pick(9)) {
      case 0:
      case 1:
      case 2:
        numbers.push(add(one(), one(), 2 + pick(20)))
        break
      case 3:
        // Some are large enough to go from node to node.
        if (random() < 0.5 && arrays.length > 0) arrays.push(turn(arrays[pick(arrays.length)]))
        else arrays.push(grow(1000 + pick(100_000), one()))
        break
      case 4:
        if (arrays.length > 0) numbers.push(total(arrays[pick(arrays.length)]))
        break
      case 5:
        bump(random() < 0.5 ? memory : own, pick(9))
        break
      case 6:
        count(counts)
        counted++
        break
      case 7:
        numbers.push(outer(2 + pick(4)))
        break
      case 8:
        sums.push(random() < 0.5 ? taken(values(20 + pick(30))) : add(3, pick(7), 1))
        break
    }
  }
  const at = name => `${folder}/${name}`
  const images = 6
  for (let i = 0; i < images; i++) {
    image(i + 1, at(`raw${i}`))
    project(at(`raw${i}`), at(`p${i}`))
  }
  const fits = []
  for (let i = 1; i < images; i++) {
    difference(at(`p${i - 1}`), at(`p${i}`), at(`d${i}`))
    fit(at(`d${i}`), at(`f${i}`))
    fits.push(at(`f${i}`))
  }
  for (const [i, path] of fits.entries()) if (i > 0) difference(fits[i - 1], path, at(`b${i}`))
  for (let i = 0; i < images; i++) note(at(`p${i % 3}`), `note ${i} `)
  const packed = []
  for (let i = 0; i < 3; i++) {
    pack(at(`p${i}`), at(`t${i}`))
    packed.push(lengths(at(`t${i}`)))
  }
  // A main that computes without a pause.
  spin(Number(busy))
  const seen = await waitOn([...numbers, ...sums, ...packed])
  for (const array of await waitOn(arrays)) seen.push(array.reduce((x, y) => x + y, 0))
  await waitOn(memory)
  await waitOn(own)
  await waitOn(counts)
  await barrier()
  const files = []
  for (let i = 0; i < images; i++) files.push(readFileSync(at(`p${i}`), 'utf8'))
  for (let i = 1; i < images - 1; i++) files.push(readFileSync(at(`b${i}`), 'utf8'))
  const all = JSON.stringify([seen, [...memory], own[0], counts[0], counted, files])
  console.log(createHash('sha256').update(all).digest('hex'), counts[0] === counted)
})
