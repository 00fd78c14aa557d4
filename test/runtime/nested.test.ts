import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

for (const cpus of ['1', '2', '5']) {
  test(`given tasks that call tasks on ${cpus} CPUs, they should not wait for each other for ever`, () => {
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [join(root, 'node_modules/tsx/dist/cli.mjs'), join(root, 'test/fixtures/nested-waits.ts')],
      {
        encoding: 'utf8',
        timeout: 60_000,
        env: { ...process.env, MILLRACE_CPUS: cpus, NESTED_CPUS: cpus, MILLRACE_JOURNAL: 'off' },
      },
    )
    assert.deepEqual(
      stdout.trimEnd().split('\n'),
      [
        '144',
        '21',
        'not waited',
        'forgetful failed: leaf failed: leaf 3',
        'TaskError',
        'leaf failed: leaf 3',
      ],
      stderr,
    )
  })
}
