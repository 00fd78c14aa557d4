// From 2.41 on, reads and writes of glibc go to the kernel by way of one function in common. A library with calls of that
// form stands for such a glibc where the machine has an older one.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  compile,
  compiler,
  contentOf,
  eventually,
  fixtures,
  once,
  rule,
  skip,
  step,
  tools,
  withWorkflow,
} from './harness.ts'

const sources = join(fixtures, 'cancel')
const library = (): string => {
  const folder = once('cancel', contentOf(sources), made =>
    compile(compiler, [
      '-std=gnu11',
      '-O1',
      '-Wall',
      '-fPIC',
      '-shared',
      '-o',
      join(made, 'libc.so.cancel'),
      join(sources, 'cancel-libc.c'),
    ]),
  )
  return join(folder, 'libc.so.cancel')
}

const plan = [step(0, 'S', '1'), step(1, 'Q', '1'), rule('file', 'f', '0', 'on_close:1', 'no_update')]

for (const [how, env] of [
  ['one thread', {}],
  ['many threads', { MANY_THREADS: '1' }],
] as const)
  test(`a libc whose calls can be cancelled is intercepted: ${how}`, { skip }, async () => {
    await withWorkflow(plan, async workflow => {
      const options = {
        cwd: workflow.dir,
        env: { ...env, LD_PRELOAD: `${tools.lib}:${library()}` },
      }
      const write = `{ printf 'first '; while [ ! -e go ]; do sleep 0.02; done; echo last; } > f`
      const consumer = workflow.preloaded('Q', 'cat', ['f'], options)
      await eventually(() => workflow.ps().some(seen => seen.type === 'wait'))
      const producer = workflow.preloaded('S', 'sh', ['-c', write], options)
      await eventually(() => Number(workflow.file('f')?.['written']) === 6)
      writeFileSync(workflow.path('go'), '')
      const [read, made] = await Promise.all([consumer.done, producer.done])
      assert.deepEqual([read.code, read.stdout, read.stderr], [0, 'first last\n', ''])
      assert.deepEqual([made.code, made.stderr], [0, ''])
    })
  })
