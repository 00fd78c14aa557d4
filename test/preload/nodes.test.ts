// What is neither a file nor a directory: links deep in the directory before the start, and pipes under governed names.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import { eventually, rule, skip, step, withWorkflow } from './harness.ts'

const plan = (mode: 'update' | 'no_update'): string[] => [
  step(0, 'S', '1'),
  step(1, 'Q', '1'),
  rule('file', 'out*', '0', 'on_close:1', mode),
  rule('file', 'deep/*.out', '0', 'on_close:1', mode),
]

test('links that lay deep in the directory before the start are followed', { skip }, async () => {
  const dir = mkdtempSync('/dev/shm/millrace-test-')
  mkdirSync(`${dir}/a/b/c`, { recursive: true })
  mkdirSync(`${dir}/out-folder`)
  symlinkSync('../../../out-file', `${dir}/a/b/c/file`)
  symlinkSync('../../out-folder', `${dir}/a/b/folder`)
  await withWorkflow(
    plan('update'),
    async workflow => {
      const at = { cwd: workflow.dir }
      const consumer = workflow.preloaded('Q', 'cat', ['a/b/c/file', 'a/b/folder/x'], at)
      assert.ok(await eventually(() => workflow.ps().some(line => line.type === 'wait')))
      const produce = 'echo 1 > out-file; echo 2 > a/b/folder/x'
      const producer = await workflow.preloaded('S', 'sh', ['-c', produce], at).done
      assert.equal(producer.code, 0, producer.stderr)
      assert.equal((await consumer.done).stdout, '1\n2\n')
    },
    dir,
  )
})

for (const mode of ['update', 'no_update'] as const)
  for (const early of [true, false])
    test(
      `a pipe under a governed name is a pipe (${mode}, ${early ? 'there before the start' : 'made by the step'})`,
      { skip },
      async () => {
        const dir = mkdtempSync('/dev/shm/millrace-test-')
        mkdirSync(`${dir}/deep`)
        const make = 'mkfifo out-pipe deep/p.out'
        if (early) assert.equal(spawnSync('sh', ['-c', make], { cwd: dir }).status, 0)
        await withWorkflow(
          plan(mode),
          async workflow => {
            const at = { cwd: workflow.dir }
            const produce = `${early ? '' : `${make};`} echo 1 > out-pipe; (echo 2; echo 3) > deep/p.out; exec 3<> out-pipe; echo 4 >&3; cat deep/p.out`
            const consume = `until [ -p deep/p.out ]; do sleep 0.02; done; cat out-pipe; cat < deep/p.out; head -n 1 out-pipe; echo 5 > deep/p.out`
            const producer = workflow.preloaded('S', 'sh', ['-c', produce], at)
            const consumer = workflow.preloaded('Q', 'sh', ['-c', consume], at)
            const [made, seen] = await Promise.all([producer.done, consumer.done])
            assert.deepEqual(
              [made.code, made.stdout, seen.code, seen.stdout],
              [0, '5\n', 0, '1\n2\n3\n4\n'],
              made.stderr + seen.stderr,
            )
          },
          dir,
        )
      },
    )
