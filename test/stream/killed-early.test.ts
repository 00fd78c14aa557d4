// A run that is killed while it still begins: what it had made goes.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Board } from '../../src/stream/board/board.ts'
import { openWorkspace } from '../../src/stream/board/workspace.ts'
import type { Opened } from '../../src/stream/board/workspace.ts'
import { streamDown } from '../../src/stream/run/commands.ts'
import { loadPlan } from '../../src/stream/language/load.ts'
import { cacheFolder } from '../../src/stream/run/toolchain.ts'
import { readState, writeState } from '../../src/stream/run/up-state.ts'
import { configOf, ears, folderOf, toolsOrReason } from './support.ts'
import { eventually } from '../processes.ts'

const { tools, skip } = await toolsOrReason()
const CLI = fileURLToPath(new URL('../../bin/millrace.js', import.meta.url))
const config = configOf(
  { make: { out: ['mid'] }, use: { in: ['mid'], out: ['end'] } },
  { permanent: ['end'] },
)

/** A cache in which the tool that makes boards stops when it has made one. It names its parent in `made.PID`. */
function stoppingTools(place: string): string {
  const cache = join(place, 'cache')
  const from = dirname(tools!.board)
  const to = join(cache, basename(cacheFolder()), relative(cacheFolder(), from))
  cpSync(from, to, { recursive: true })
  const board = join(to, 'millrace-board')
  renameSync(board, `${board}.real`)
  execFileSync('mkfifo', [join(place, 'gate')])
  const lines = [
    '#!/bin/sh',
    '[ "$1" = create ] || exec "$0.real" "$@"',
    '"$0.real" "$@" || exit',
    `echo $PPID > '${place}/making' && mv '${place}/making' '${place}'/made.$$`,
    `read word < '${place}/gate'`,
    '',
  ]
  writeFileSync(board, lines.join('\n'))
  chmodSync(board, 0o755)
  return cache
}

const leftBy = (pid: number): string[] =>
  ['/dev/shm', tmpdir()].flatMap(folder =>
    readdirSync(folder).filter(name => name.startsWith('millrace') && name.includes(`${pid}.`)),
  )

const madeIn = (place: string): { tool: number; owner: number }[] =>
  readdirSync(place).flatMap(name => {
    if (!name.startsWith('made.')) return []
    return [{ tool: Number(name.slice(5)), owner: Number(readFileSync(join(place, name), 'utf8')) }]
  })

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}

describe('killed when the board is made, and nothing else', { skip, timeout: 240_000 }, () => {
  const cases: [string, string[]][] = [
    ['a run on one machine', []],
    ['the node of a run on several', ['--nodes', 'local:1']],
  ]
  for (const [who, words] of cases) {
    test(`${who}: nothing is left`, async () => {
      const place = folderOf({ 'Config.json': config })
      const cache = stoppingTools(place)
      const steps = ['--step=make=echo 1 > mid', '--step=use=cat mid > end']
      const run = spawn(process.execPath, [CLI, 'stream', 'run', 'Config.json', ...steps, ...words], {
        cwd: place,
        env: { ...process.env, XDG_CACHE_HOME: cache },
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      let told = ''
      run.stderr.on('data', (part: Buffer) => (told += part.toString()))
      const ended = new Promise<number | null>(resolve => run.on('exit', resolve))
      try {
        assert.ok(await eventually(() => madeIn(place).length > 0 || run.exitCode !== null), told)
        const [{ owner } = { owner: 0 }] = madeIn(place)
        assert.equal(owner === run.pid, words.length === 0, told)
        assert.ok(leftBy(owner).length >= 2, 'a board and a directory')
        killQuietly(owner)
        assert.ok(
          await eventually(() => leftBy(owner).length === 0),
          `left: ${leftBy(owner).join(', ')}\n${told}`,
        )
        assert.notEqual(await ended, 0, told)
        const states = join(cache, basename(cacheFolder()), 'up')
        assert.ok(await eventually(() => readdirSync(states).length === 0), readdirSync(states).join(', '))
      } finally {
        for (const { tool } of madeIn(place)) killQuietly(tool)
        run.kill('SIGKILL')
      }
    })
  }
})

test(
  'what will be made is announced before it is made, and can be removed when it never was',
  { skip },
  async () => {
    const place = folderOf({ 'Config.json': config })
    const { plan: checked } = loadPlan(join(place, 'Config.json'))
    let announced: Opened | undefined
    const announce = async (opened: Opened): Promise<void> => {
      const { dir, layer } = opened.workspace
      assert.deepEqual([dirname(dir), layer ?? dir].filter(existsSync), [])
      announced = opened
      throw new Error('killed here')
    }
    await assert.rejects(openWorkspace(checked, undefined, place, { announce }), /killed here/)
    const board = new Board(tools!, `early.run${process.pid}.0`)
    for (const keep of [false, true]) {
      await writeState(board, announced!)
      const io = ears()
      assert.equal(await streamDown({ workflow: board.workflow, force: true, keep }, io), 0, io.told())
      assert.equal(await readState(board), undefined)
    }
    assert.deepEqual(leftBy(process.pid), [])
  },
)
