// The built things themselves: exported names, sizes of files, and the logic under the sanitizers.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  compile,
  fixtures,
  contentOf,
  hasCommand,
  once,
  pause,
  preload,
  rule,
  skip,
  start,
  step,
  tools,
  withWorkflow,
} from './harness.ts'

test(
  'the library exports one name and needs few',
  { skip: skip || (hasCommand('nm') ? false : 'nm is not installed') },
  () => {
    const names = (args: string[]): string[] =>
      spawnSync('nm', ['-D', ...args, tools.lib], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter(line => line !== '' && !/ w /.test(line))
        .map(line => line.trim().split(/\s+/).pop() ?? '')
    assert.deepEqual(names(['--defined-only']), ['millrace_preload_version'])
    // all but the first only to look where they are
    const needed = names(['--undefined-only']).map(name => name.replace(/@.*/, ''))
    assert.deepEqual(needed.sort(), [
      'close',
      'dl_iterate_phdr',
      'execve',
      'open64',
      'openat64',
      'pread64',
      'pwrite64',
      'read',
      'write',
    ])
  },
)

test(
  'the library leaves vector registers alone, but for two functions that put them back',
  { skip: skip || (hasCommand('objdump') ? false : 'objdump is not installed') },
  () => {
    const code = spawnSync('objdump', ['-d', '--no-show-raw-insn', tools.lib], {
      encoding: 'utf8',
      maxBuffer: 1 << 27,
    }).stdout
    assert.ok(code.length > 10_000)
    const functions = code.split(/\n\n(?=[0-9a-f]+ <)/).filter(text => /%[xyz]mm\d|%st\b|%mm\d/.test(text))
    assert.deepEqual(
      functions.map(text => /<(.*)>:/.exec(text)?.[1]),
      ['mr_stub_path1', 'mr_scan'],
    )
  },
)

test('every C file has at most 400 lines', () => {
  for (const name of readdirSync(preload).filter(file => /\.[chS]$/.test(file))) {
    const lines = readFileSync(join(preload, name), 'utf8').split('\n').length
    assert.ok(lines <= 400, `${name} has ${lines} lines`)
  }
})

test('the offsets of libc are found once and then kept', { skip }, async () => {
  await withWorkflow([step(0, 'S')], async workflow => {
    const cache = mkdtempSync(join(tmpdir(), 'millrace-sites-'))
    const env = { MILLRACE_STREAM_CACHE: cache, MILLRACE_STREAM_VERBOSE: '1' }
    const first = await workflow.preloaded('S', 'true', [], { env }).done
    const second = await workflow.preloaded('S', 'true', [], { env }).done
    assert.match(first.stderr, /^millrace: \d+ sites patched, libc scanned\n$/)
    assert.match(second.stderr, /^millrace: \d+ sites patched, offsets from the cache\n$/)
    rmSync(cache, { recursive: true })
  })
})

test('a process killed inside the lock: the next one repairs the board and goes on', { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-logic-'))
  try {
    const built = once('logic', contentOf(preload) + contentOf(fixtures), made => {
      const [archive, source] = [join(made, 'logic.a'), join(fixtures, 'logic-die-in-lock.c')]
      compile('sh', [join(preload, 'build.sh'), '--logic', archive])
      compile('cc', ['-std=gnu11', '-o', join(made, 'die'), source, archive])
    })
    const die = join(built, 'die')
    const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:1', 'no_update')]
    await withWorkflow(plan, async workflow => {
      const board = String(workflow.ps().find(line => line.type === 'board')?.['path'])
      const consumer = workflow.preloaded('Q', 'cat', [workflow.path('f')])
      await pause(200)
      assert.equal((await start(die, [board]).done).code, 128)
      const outcome = await consumer.done
      assert.match(outcome.stderr, /Input\/output error|No such file/)
      const shown = workflow.ps()
      assert.equal(shown.find(line => line.type === 'board')?.['repaired'], 1)
      assert.equal(shown.find(line => line.type === 'file')?.['writers'], 0)
      assert.equal(shown.find(line => line.type === 'file')?.['state'], 'failed')
      assert.equal(
        shown.some(line => line.type === 'process'),
        false,
      )
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
