// Tasks with files of all kinds. They look at where they are: on agents with folders of their own, no path is one of main's.
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const {
  task,
  command,
  main,
  waitOn,
  waitOnFile,
  barrier,
  IN,
  FILE_IN,
  FILE_OUT,
  FILE_INOUT,
  FILE_CONCURRENT,
  FILE_COMMUTATIVE,
  DIR_IN,
  DIR_OUT,
  DIR_INOUT,
} = await import(pathToFileURL(process.env.MILLRACE_INDEX).href)

const [mode = 'all'] = process.argv.slice(2)
const root = process.env.MILLRACE_NODE_FOLDER
const spin = ms => {
  const end = performance.now() + ms
  while (performance.now() < end);
}
/** Whether the task is where the nodes have their folders. */
const isApart = () => (root ? process.cwd().startsWith(root) : false)

export const where = task({ name: 'where' }, () => {
  spin(30)
  return [process.cwd(), isApart()]
})
export const write = task({ name: 'write', params: [IN, FILE_OUT] }, (text, path) => {
  spin(5)
  writeFileSync(path, text)
})
export const append = task({ name: 'append', params: [FILE_INOUT, IN] }, (path, text) => {
  spin(5)
  appendFileSync(path, text)
})
export const member = task({ name: 'member', params: [FILE_COMMUTATIVE, IN] }, (path, text) => {
  spin(5)
  appendFileSync(path, text)
})
export const together = task({ name: 'together', params: [FILE_CONCURRENT, IN] }, (path, text) => {
  spin(10)
  appendFileSync(path, text)
})
export const join2 = command({ name: 'join2', params: [FILE_IN, FILE_IN, FILE_OUT], stdout: 2 }, (a, b) => [
  'cat',
  a,
  b,
])
export const size = task({ name: 'size', params: [FILE_IN] }, path => readFileSync(path).length)
export const folder = task({ name: 'folder', params: [IN, DIR_OUT] }, (n, path) => {
  mkdirSync(join(path, 'inner', 'empty'), { recursive: true })
  for (let i = 0; i < n; i++) writeFileSync(join(path, 'inner', `f${i}`), `${i}`, { mode: 0o640 })
})
export const list = task({ name: 'list', params: [DIR_IN] }, path =>
  readdirSync(path, { recursive: true }).sort().join(' '),
)
export const more = task({ name: 'more', params: [DIR_INOUT] }, path => {
  writeFileSync(join(path, 'more'), 'more')
})
export const outer = task({ name: 'outer', params: [IN, FILE_OUT] }, async (text, path) => {
  write(text, 'nested')
  const seen = readFileSync(await waitOnFile('nested'), 'utf8')
  writeFileSync(path, `${seen}!`)
})
export const large = task({ name: 'large', params: [IN, FILE_OUT] }, (n, path) => {
  writeFileSync(path, Buffer.alloc(n, 'abcdefg'))
})
export const hash = task({ name: 'hash', params: [FILE_IN] }, path => {
  spin(20)
  return createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 12)
})
export const fails = command({ name: 'fails', params: [FILE_IN] }, path => [
  'sh',
  '-c',
  'echo said of $(cat "$0") >&2; exit 3',
  path,
])
export const forgets = task({ name: 'forgets', params: [FILE_OUT] }, () => undefined)
export const says = command({ name: 'says', params: [FILE_IN] }, path => ['cat', path])
/** Its node is lost the first time that it runs. */
export const dies = task({ name: 'dies', params: [FILE_IN, FILE_OUT, IN] }, (from, to, mark) => {
  writeFileSync(to, readFileSync(from, 'utf8').toUpperCase())
  if (existsSync(mark)) return
  writeFileSync(mark, '')
  process.kill(process.pid, 'SIGKILL')
  spin(5000)
})

const modes = {
  async all() {
    const places = await waitOn(Array.from({ length: 6 }, () => where()))
    writeFileSync('given', 'given ')
    writeFileSync('team', '')
    writeFileSync('all', '')
    write('a', 'a')
    write('b', join(process.cwd(), 'b'))
    join2('a', 'b', 'out/ab')
    join2('given', 'out/ab', 'c')
    for (let i = 0; i < 5; i++) append('c', `${i}`)
    for (let i = 0; i < 5; i++) member('team', `${i}`)
    for (let i = 0; i < 6; i++) together('all', 'x')
    folder(3, 'tree')
    const before = list('tree')
    more('tree')
    const after = list('tree')
    outer('nested', 'outer')
    const sizes = await waitOn([size('given'), size('c'), size('all')])
    large(3_000_000, 'large')
    const hashes = new Set(await waitOn(Array.from({ length: 6 }, () => hash('large'))))
    const lists = await waitOn([before, after])
    await barrier()
    return {
      places: new Set(places.map(([path]) => path)).size,
      areApart: places.every(([, is]) => is),
      ab: readFileSync('out/ab', 'utf8'),
      c: readFileSync('c', 'utf8'),
      team: [...readFileSync('team', 'utf8')].sort().join(''),
      all: readFileSync('all', 'utf8'),
      sizes,
      lists,
      outer: readFileSync('outer', 'utf8'),
      nested: readFileSync('nested', 'utf8'),
      tree: readdirSync('tree', { recursive: true }).sort().join(' '),
      hashes: [...hashes],
      large: createHash('sha256').update(readFileSync('large')).digest('hex').slice(0, 12),
    }
  },
  async fails() {
    write('it', 'f')
    await fails('f')
  },
  async forgets() {
    await forgets('none')
  },
  async says() {
    write('it was said\n', 'f')
    await says('f')
  },
  async missing() {
    await size('nothing')
  },
  async dies() {
    write('word', 'f')
    for (let i = 0; i < 3; i++) dies('f', `d${i}`, join(process.cwd(), 'mark'))
    await barrier()
    return [0, 1, 2].map(i => readFileSync(`d${i}`, 'utf8'))
  },
  /** The file is another one for the second task: main writes it meanwhile. */
  async changes() {
    writeFileSync('f', 'one')
    const first = await size('f')
    writeFileSync('f', 'three')
    return [first, await size('f'), basename(process.cwd())]
  },
}
main(async () => {
  const result = await modes[mode]()
  if (result) console.log(JSON.stringify(result))
})
