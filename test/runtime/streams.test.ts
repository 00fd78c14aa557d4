// Outputs of commands with the rules of streams. Steps that must run at the same time prove it: one waits for a
// file that the other makes only after it has read something.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import test, { describe } from 'node:test'
import { CancelledError, MillraceError, stream, TaskError, waitOnFile } from 'millrace'
import * as commands from '../fixtures/commands.ts'
import * as tasks from '../fixtures/tasks.ts'
import { toolsOrReason } from '../stream/support.ts'
import { rejection, temporaryFolder } from './embedded.ts'

const { skip } = await toolsOrReason()

const folder = temporaryFolder()
const newFolder = (): string => mkdtempSync(join(folder, 's'))
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')
const growing = { commit: 'on_close', fire: 'no_update' } as const
const until = (path: string): string => `while [ ! -e '${path}' ]; do sleep 0.01; done`
const lines = (path: string): string[] => readFileSync(path, 'utf8').trimEnd().split('\n')

describe('streams between commands, on two CPUs', { skip, timeout: 300_000 }, () => {
  test('three steps run at the same time, each on what the one before has written so far', async () => {
    const at = newFolder()
    const [a, b, c, seen] = ['a', 'b', 'c', 'seen'].map(name => join(at, name)) as [
      string,
      string,
      string,
      string,
    ]
    commands.begin(stream(a, growing), `exec > "$0"; echo 1; ${until(seen)}; echo 2`)
    commands.step(a, stream(b, growing), 'while read n; do echo $((n * 10)); done < "$0" > "$1"')
    commands.step(b, c, `while read n; do echo $((n + 1)); : > '${seen}'; done < "$0" > "$1"`)
    assert.equal(await contents(c), '11\n21\n')
    assert.equal(await contents(a), '1\n2\n')
    assert.equal(await contents(b), '10\n20\n')
    assert.equal(existsSync(a), true)
  })

  test('standard input and output can be streams', async () => {
    const at = newFolder()
    const [a, b, c] = [join(at, 'a'), join(at, 'b'), join(at, 'c')]
    commands.begin(stream(a, growing), 'seq 1 3 > "$0"')
    commands.byStandardStreams(a, stream(b, growing), "awk '{ print $1 * 2 }'")
    commands.byStandardStreams(b, c, "awk '{ s += $1 } END { print s }'")
    assert.equal(await contents(c), '12\n')
  })

  test('a file that is complete when it is closed is read before its producer ends', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    const first = commands.begin(
      stream(a, { commit: 'on_close' }),
      `echo done > "$0"; ${until(seen)}; echo too late > '${at}/other'`,
    )
    assert.equal(await tasks.readText(a), 'done\n', 'a function reads it too')
    commands.step(a, b, `cat "$0" > "$1"; : > '${seen}'`)
    assert.equal(await contents(b), 'done\n')
    assert.equal(await first, 0)
    assert.equal(await contents(a), 'done\n')
  })

  test('a function waits for the commit of what a command reads as it grows', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    commands.begin(stream(a, growing), `exec > "$0"; echo 1; ${until(seen)}; echo 2`)
    const text = tasks.readText(a)
    commands.step(a, b, `{ read n; echo $n; : > '${seen}'; cat; } < "$0" > "$1"`)
    assert.equal(await text, '1\n2\n')
    assert.equal(await contents(b), '1\n2\n')
  })

  test('a command that is called when its producer already runs joins in', async () => {
    const at = newFolder()
    const [a, b, begun, seen] = ['a', 'b', 'begun', 'seen'].map(name => join(at, name)) as [
      string,
      string,
      string,
      string,
    ]
    commands.begin(stream(a, growing), `: > '${begun}'; exec > "$0"; echo 1; ${until(seen)}; echo 2`)
    while (!existsSync(begun)) await new Promise(resolve => setTimeout(resolve, 5))
    commands.step(a, b, `{ read n; : > '${seen}'; cat; } < "$0" > "$1"`)
    assert.equal(await contents(b), '2\n')
  })

  test('more followers of one stream than CPUs', async () => {
    const at = newFolder()
    const a = join(at, 'a')
    const outputs = Array.from({ length: 6 }, (_, i) => join(at, `out${i}`))
    const marks = outputs.map(path => until(`${path}.seen`)).join('; ')
    commands.begin(stream(a, growing), `exec > "$0"; echo 1; ${marks}; echo 2`)
    for (const path of outputs) commands.step(a, path, `{ read n; : > '${path}.seen'; cat; } < "$0" > "$1"`)
    for (const path of outputs) assert.equal(await contents(path), '2\n')
  })

  test('nothing is left in memory', async () => {
    const at = newFolder()
    commands.begin(stream(join(at, 'a'), growing), 'seq 1 1000 > "$0"')
    commands.step(join(at, 'a'), join(at, 'b'), 'wc -l < "$0" > "$1"')
    assert.match(await contents(join(at, 'b')), /1000/)
    await new Promise(resolve => setTimeout(resolve, 100))
    const roots = readdirSync('/dev/shm').filter(name => name.startsWith('millrace-streams.'))
    const mine = roots.filter(name => readdirSync(join('/dev/shm', name)).length > 1)
    assert.deepEqual(mine, [])
  })
})

describe('streams that fail', { skip, timeout: 300_000 }, () => {
  test('a producer that fails takes its followers along, and they name it', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    const first = commands.begin(stream(a, growing), `exec > "$0"; echo 1; ${until(seen)}; exit 3`)
    const second = commands.step(a, b, `{ read n; : > '${seen}'; cat; } < "$0" > "$1"`)
    const [why, then] = await Promise.all([rejection(first), rejection(second)])
    assert.ok(why instanceof TaskError, String(why))
    assert.ok(then instanceof CancelledError, String(then))
    assert.match(then.message, /begin/)
    assert.equal(existsSync(b), false)
  })

  test('when a producer is tried again, so are those who read its first attempt', async () => {
    const at = newFolder()
    const [a, b, seen, tried, runs] = ['a', 'b', 'seen', 'tried', 'runs'].map(name =>
      join(at, name),
    ) as string[]
    const line = `exec > "$0"; if [ -e '${tried}' ]; then echo good; exit; fi
      : > '${tried}'; echo bad; ${until(seen!)}; exit 3`
    commands.persistent(stream(a!, growing), line)
    commands.step(a!, b!, `echo run >> '${runs}'; { read n; echo $n; : > '${seen}'; cat; } < "$0" > "$1"`)
    assert.equal(await contents(b!), 'good\n')
    assert.equal(await contents(a!), 'good\n')
    assert.equal(lines(runs!).length, 2)
  })

  test('a failure that is ignored: followers run again on what is there', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    commands.careless(stream(a, growing), `exec > "$0"; echo half; ${until(seen)}; exit 3`)
    commands.step(a, b, `{ read n; echo $n; : > '${seen}'; cat; } < "$0" > "$1"`)
    assert.equal(await contents(b), 'half\n')
  })

  test('a follower that fails by itself is to blame itself', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    const first = commands.begin(stream(a, growing), `exec > "$0"; echo 1; ${until(seen)}; echo 2`)
    const second = commands.step(a, b, `read n < "$0"; : > '${seen}'; exit 5`)
    const why = await rejection(second)
    assert.ok(why instanceof TaskError, String(why))
    assert.match(String(why.message) + String((why as Error).cause), /5/)
    assert.equal(await first, 0)
  })

  test('a file that was complete stays so when its producer fails afterwards', async () => {
    const at = newFolder()
    const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
    const first = commands.begin(
      stream(a, { commit: 'on_close' }),
      `echo done > "$0"; ${until(seen)}; exit 3`,
    )
    commands.step(a, b, `cat "$0" > "$1"; : > '${seen}'`)
    assert.equal(await contents(b), 'done\n')
    assert.ok((await rejection(first)) instanceof TaskError)
  })
})

test('stream says what is wrong with it', async () => {
  assert.throws(() => stream('a', { commit: 'on_close:0' }), /commit is 'on_close:0'/)
  assert.throws(() => stream('a', { comit: 'on_close' } as object), /Did you mean commit|no option comit/)
  assert.throws(() => stream('a', { fire: 'later' as 'update' }), /fire is 'later'/)
  const given = stream('a', growing)
  assert.throws(
    () => commands.step(given, 'b', ''),
    (error: unknown) =>
      error instanceof MillraceError && /FILE_OUT and DIR_OUT of a command/.test(error.message),
  )
})
