import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { FILE_IN, FILE_OUT, IN, configure, main, removeFile, task, waitOn, waitOnFile } from 'millrace'

/** Plays random programs of I/O with real threads and files; the test that starts it looks at what comes out. */

interface Step {
  op: 'write' | 'change' | 'read'
  isIo: boolean
  mb: 5 | 10 | 20
  size: number
  temporary: boolean
  fails: number
  back: number
}

/** No step reads a file that is older than this many steps. */
const WINDOW = 3
const { RANDOM_FOLDER: folder = '', RANDOM_REMOVES } = process.env
/** Else temporary files are left to the end of the program. */
const removes = RANDOM_REMOVES !== 'no'
configure(JSON.parse(readFileSync('options.json', 'utf8')))

/** Bytes of data in a folder, without what Millrace notes about them; files come and go meanwhile. */
function bytesIn(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (!found?.isDirectory()) return found?.size ?? 0
  try {
    return readdirSync(path)
      .filter(name => name !== '.millrace-target' && name !== 'owner')
      .reduce((sum, name) => sum + bytesIn(join(path, name)), 0)
  } catch {
    return 0
  }
}

const content = (id: number, size: number): string => `${id} `.padEnd(size, '.')

/** Fails so often before it succeeds, leaving half a file behind. */
async function write(id: number, size: number, fails: number, path: string): Promise<number> {
  const attempts = join(folder, 'attempts', String(id))
  await appendFile(attempts, '.')
  const attempt = (await readFile(attempts, 'utf8')).length
  await writeFile(path, content(id, attempt <= fails ? Math.floor(size / 2) : size))
  if (attempt <= fails) throw new Error(`attempt ${attempt} of ${id} fails`)
  return bytesIn(join(folder, 'fast'))
}

const change = async (
  id: number,
  size: number,
  fails: number,
  path: string,
  from: string,
): Promise<string> => {
  const text = await readFile(from, 'utf8')
  await write(id, size, fails, path)
  return `${Number.parseInt(text)} ${text.length} ${bytesIn(join(folder, 'fast'))}`
}

const look = async (path: string): Promise<string> => {
  const text = await readFile(path, 'utf8')
  return `${Number.parseInt(text)} ${text.length} ${bytesIn(join(folder, 'fast'))}`
}

const sized = { retries: 2, onFailure: 'cancelSuccessors', size: (_: number, size: number) => size } as const
const WRITE = [IN, IN, IN, FILE_OUT] as const
const CHANGE = [IN, IN, IN, FILE_OUT, FILE_IN] as const

const kinds = (isIo: boolean, mb: number, temporary: boolean) => {
  const options = { ...sized, ...(isIo ? { io: true } : {}), bandwidth: mb, temporary }
  const name = `${isIo ? 'io' : 'cpu'}_${mb}${temporary ? '_temporary' : ''}`
  return {
    write: task({ ...options, name: `write_${name}`, params: WRITE }, write),
    change: task({ ...options, name: `change_${name}`, params: CHANGE }, change),
    read: task(
      { name: `read_${name}`, ...(isIo ? { io: true } : {}), bandwidth: mb, params: [FILE_IN] },
      look,
    ),
  }
}

const all = new Map<string, ReturnType<typeof kinds>>()
for (const isIo of [true, false]) {
  for (const mb of [5, 10, 20]) {
    for (const temporary of [true, false]) all.set(`${isIo} ${mb} ${temporary}`, kinds(isIo, mb, temporary))
  }
}

let last = 0

/** What a call is to give, and whether it can. */
interface Expected {
  got: PromiseLike<unknown>
  read: string | null
  isDead: boolean
}

async function play(steps: readonly Step[]): Promise<{ fast: number; kept: string[] }> {
  const files: { path: string; id: number; size: number; temporary: boolean; isDead: boolean }[] = []
  const expected: Expected[] = []
  const removed: Promise<void>[] = []
  for (const { op, isIo, mb, size, temporary, fails, back } of steps) {
    const kind = all.get(`${isIo} ${mb} ${temporary}`)
    const from = files.at(-1 - back)
    if (!kind) throw new Error('no such kind')
    if (op === 'read') {
      if (from) {
        expected.push({ got: kind.read(from.path), read: `${from.id} ${from.size}`, isDead: from.isDead })
      }
      continue
    }
    const id = ++last
    const path = join(folder, 'out', `${id}`)
    const isDead = fails > 2 || (op === 'change' && from?.isDead === true)
    const got =
      op === 'change' && from
        ? kind.change(id, size, fails, path, from.path)
        : kind.write(id, size, fails, path)
    expected.push({ got, read: op === 'change' && from ? `${from.id} ${from.size}` : null, isDead })
    files.push({ path, id, size, temporary, isDead })
    const old = files.at(-1 - WINDOW)
    if (removes && old?.temporary) removed.push(removeFile(old.path))
  }
  for (const { path, temporary } of files.slice(-WINDOW)) {
    if (removes && temporary) removed.push(removeFile(path))
  }
  let fast = 0
  for (const { got, read, isDead } of expected) {
    const value = await waitOn(got).catch((error: unknown) => error as Error)
    if (value instanceof Error !== isDead)
      throw new Error(`expected ${isDead ? 'a failure' : read}, got ${String(value)}`)
    if (value instanceof Error) continue
    const words = String(value).split(' ')
    fast = Math.max(fast, Number(words.at(-1)))
    if (read !== null && words.slice(0, 2).join(' ') !== read)
      throw new Error(`read ${String(value)}, not ${read}`)
  }
  await Promise.all(removed)
  const kept: string[] = []
  for (const { path, id, size, temporary, isDead } of files) {
    if (temporary || isDead) continue
    if (id % 2 === 0) await waitOnFile(path)
    kept.push(`${path} ${id} ${size}`)
  }
  return { fast, kept }
}

main(async () => {
  const programs = JSON.parse(await readFile('programs.json', 'utf8')) as Step[][]
  let fast = 0
  const kept: string[] = []
  for (const steps of programs) {
    const result = await play(steps)
    fast = Math.max(fast, result.fast)
    kept.push(...result.kept)
  }
  await writeFile('result.json', JSON.stringify({ fast, kept }))
})
