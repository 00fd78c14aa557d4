// The handlers of the calls, built with the address and undefined-behaviour sanitizers and called directly
// (fixtures/logic-through.h): files in memory, files that move because memory is full, and random plays.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { compile, contentOf, fixtures, once, preload, rule, skip, start, step, Workflow } from './harness.ts'
import { randomPlays } from './play.ts'
import { skipSmall, withSmallMemory } from './small-memory.ts'

const flags = ['-fsanitize=address,undefined', '-fno-omit-frame-pointer', '-fno-sanitize-recover=undefined']
const canSanitize = (): boolean => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-probe-'))
  const probe = spawnSync('cc', [...flags, '-x', 'c', '-o', join(folder, 'probe'), '-'], {
    input: 'int main(void){return 0;}',
  })
  rmSync(folder, { recursive: true, force: true })
  return probe.status === 0
}
const without = skip || (!canSanitize() && 'the compiler has no sanitizers')

const built = (): string =>
  once('sanitized-calls', contentOf(preload) + contentOf(fixtures), made => {
    const archive = join(made, 'logic.a')
    compile('sh', [join(preload, 'build.sh'), '--sanitize', archive])
    const model = [join(fixtures, 'logic-model.c'), archive]
    compile('cc', [
      '-O1',
      '-g',
      '-std=gnu11',
      '-Wall',
      '-Wextra',
      ...flags,
      '-o',
      join(made, 'logic-model'),
      ...model,
    ])
    for (const name of ['puppet', 'random-writer']) {
      const sources = ['-include', join(fixtures, 'logic-through.h'), join(fixtures, `${name}.c`), archive]
      compile('cc', ['-O1', '-g', '-std=gnu11', ...flags, '-o', join(made, name), ...sources])
    }
  })

test(
  'the logic agrees with its models, under the sanitizers',
  { skip: without, timeout: 240_000 },
  async () => {
    for (const seed of ['1', '2', '3']) {
      const env = { LD_PRELOAD: undefined }
      const outcome = await start(join(built(), 'logic-model'), [seed, '60'], { limit: 60_000, env }).done
      assert.deepEqual([outcome.code, outcome.stdout, outcome.stderr], [0, 'agrees\n', ''])
    }
  },
)

/** A random program in `dir` leaves what it leaves elsewhere, and the sanitizers say nothing. */
const compare = async (dir: string, plan: string[], seed: number): Promise<void> => {
  const workflow = new Workflow(
    [step(0, 'S'), ...plan, rule('file', 'r-*', '0', 'on_termination:0', 'no_update')],
    dir,
  )
  const plain = mkdtempSync(join(tmpdir(), 'millrace-plain-'))
  const program = join(built(), 'random-writer')
  try {
    const alone = { CAPIO_WORKFLOW_NAME: undefined, ASAN_OPTIONS: 'detect_leaks=0' }
    const expected = await start(program, [plain, String(seed)], { env: alone }).done
    const env = {
      ...workflow.env('S'),
      LD_PRELOAD: undefined,
      ASAN_OPTIONS: 'detect_leaks=0',
      MILLRACE_STREAM_GATHER: '3',
    }
    const seen = await start(program, [dir, String(seed)], { env, limit: 60_000 }).done
    assert.deepEqual([seen.code, seen.stderr], [expected.code, ''], `seed ${seed}`)
    assert.deepEqual(readdirSync(dir).sort(), readdirSync(plain).sort())
    for (const name of readdirSync(plain))
      assert.ok(
        readFileSync(join(plain, name)).equals(readFileSync(join(dir, name))),
        `seed ${seed}: ${name}`,
      )
  } finally {
    workflow.board(['destroy', '--force'])
    rmSync(plain, { recursive: true, force: true })
  }
}

test('random programs, under the sanitizers', { skip: without, timeout: 300_000 }, async () => {
  for (let seed = 1; seed <= 4; seed++) {
    const dir = mkdtempSync('/dev/shm/millrace-test-')
    await compare(dir, [], seed).finally(() => rmSync(dir, { recursive: true, force: true }))
  }
})

test(
  'random programs in memory that is always full, under the sanitizers',
  { skip: without || skipSmall, timeout: 300_000 },
  async () => {
    for (let seed = 1; seed <= 4; seed++)
      await withSmallMemory('96k', ({ memory, layer }) =>
        compare(join(memory, 'files'), [`layer\t${layer}`], seed),
      )
  },
)

test(
  'random plays against the model, under the sanitizers',
  { skip: without, timeout: 300_000 },
  async () => {
    const env = { LD_PRELOAD: '', ASAN_OPTIONS: 'detect_leaks=0' }
    await randomPlays(Number(process.env['MILLRACE_MODEL_RUNS'] ?? 8), join(built(), 'puppet'), env)
  },
)
