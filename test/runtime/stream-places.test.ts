// Streams of directories, streams that are complete with others, and streams between commands that a task calls.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import test, { describe } from 'node:test'
import { MillraceError, stream, waitOnFile } from 'millrace'
import * as commands from '../fixtures/commands.ts'
import { toolsOrReason } from '../stream/support.ts'
import { rejection, temporaryFolder } from './embedded.ts'

const { skip } = await toolsOrReason()

const folder = temporaryFolder()
const newFolder = (): string => mkdtempSync(join(folder, 'd'))
const contents = async (path: string): Promise<string> => readFileSync(await waitOnFile(path), 'utf8')
const until = (path: string): string => `while [ ! -e '${path}' ]; do sleep 0.01; done`

describe('streams of directories', { skip, timeout: 300_000 }, () => {
  test('files of a directory are read when they are closed, while its command goes on', async () => {
    const at = newFolder()
    const [parts, out, seen] = [join(at, 'parts'), join(at, 'out'), join(at, 'seen')]
    commands.fill(
      stream(parts, { commit: 'on_close', fire: 'no_update' }),
      `echo one > "$0"/1; ${until(seen)}; echo two > "$0"/2`,
    )
    commands.gather(parts, out, `cat "$0"/1 > "$1"; : > '${seen}'; ls "$0" >> "$1"; cat "$0"/2 >> "$1"`)
    assert.equal(await contents(out), 'one\n1\n2\ntwo\n', 'its listing waits for the end')
    assert.deepEqual(readdirSync(await waitOnFile(parts)).sort(), ['1', '2'])
    assert.equal(readFileSync(join(parts, '2'), 'utf8'), 'two\n')
  })

  test('a directory is complete with its number of files, before its command has ended', async () => {
    const at = newFolder()
    const [parts, out, seen] = [join(at, 'parts'), join(at, 'out'), join(at, 'seen')]
    const first = commands.fill(
      stream(parts, { commit: 'on_n_files:3' }),
      `for i in 1 2 3; do echo $i > "$0"/$i; done; ${until(seen)}`,
    )
    commands.gather(parts, out, `cat "$0"/* > "$1"; : > '${seen}'`)
    assert.equal(await contents(out), '1\n2\n3\n')
    assert.equal(await first, 0)
    assert.deepEqual(readdirSync(await waitOnFile(parts)).sort(), ['1', '2', '3'])
  })

  test('on_n_files for a file is a mistake', () => {
    assert.throws(
      () => commands.begin(stream('x', { commit: 'on_n_files:3' }), ''),
      (error: unknown) => error instanceof MillraceError && /for directories/.test(error.message),
    )
  })
})

describe('streams with each other', { skip, timeout: 300_000 }, () => {
  test('a file is complete when the file beside it is', async () => {
    const at = newFolder()
    const [data, mark, out, seen] = ['data', 'mark', 'out', 'seen'].map(name => join(at, name)) as [
      string,
      string,
      string,
      string,
    ]
    commands.two(
      stream(data, { commit: `on_file:${mark}` }),
      stream(mark, { commit: 'on_close' }),
      `echo a > "$0"; echo b >> "$0"; : > "$1"; ${until(seen)}`,
    )
    commands.step(data, out, `cat "$0" > "$1"; : > '${seen}'`)
    assert.equal(await contents(out), 'a\nb\n')
  })

  test('a file beside that is no stream of the command is named', async () => {
    const at = newFolder()
    const error = await rejection(
      commands.begin(stream(join(at, 'data'), { commit: `on_file:${at}/other` }), 'echo > "$0"'),
    )
    assert.match(String(error), /on_file names .*other, which is no stream of begin/)
  })
})

test('commands that a task calls stream too', { skip, timeout: 300_000 }, async () => {
  const at = newFolder()
  const [a, b, seen] = [join(at, 'a'), join(at, 'b'), join(at, 'seen')]
  await commands.inside2(
    a,
    b,
    `exec > "$0"; echo 1; ${until(seen)}; echo 2`,
    `while read n; do echo $((n + 1)); : > '${seen}'; done < "$0" > "$1"`,
    { commit: 'on_close', fire: 'no_update' },
  )
  assert.equal(readFileSync(b, 'utf8'), '2\n3\n')
  assert.equal(await contents(a), '1\n2\n')
})
