// Names that change while files are written: renames by other processes, renamed directories, links on the way.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import { eventually, rule, skip, step, withWorkflow, type Outcome, type Workflow } from './harness.ts'

const both = ['update', 'no_update'] as const
const governed = (mode: (typeof both)[number], commit = 'on_close:1'): string[] => [
  step(0, 'S', '1'),
  step(1, 'Q', '1'),
  rule('file', 'out*', '0', commit, mode),
]

/** Runs both in the managed directory; the producer goes on behind `touch go` when the consumer waits or reads. */
const together = async (
  workflow: Workflow,
  produce: string,
  consume: string,
): Promise<[Outcome, Outcome]> => {
  const at = { cwd: workflow.dir }
  const producer = workflow.preloaded('S', 'sh', ['-c', produce], at)
  const consumer = workflow.preloaded('Q', 'sh', ['-c', consume], at)
  await eventually(() => workflow.ps().some(line => line.type === 'wait'), 250)
  await workflow.preloaded(undefined, 'touch', ['go'], at).done
  return Promise.all([producer.done, consumer.done])
}
const untilGo = 'while [ ! -e go ]; do sleep 0.02; done'

const writers: [string, string][] = [
  ['a shell', `exec 3> part; echo a >&3; mv part out; ${untilGo}; echo b >&3; exec 3>&-`],
  [
    'a shell, by a copy of its descriptor',
    `exec 3> part 4>&3; echo a >&3; mv part out; exec 3>&-; ${untilGo}; echo b >&4; exec 4>&-`,
  ],
  ['a shell that is left before', `(echo a; ${untilGo}; echo b) > part & sleep 0.1; mv part out; wait`],
  [
    'a shell, under two names',
    `exec 3> part; echo a >&3; ln part out; ${untilGo}; echo b >&3; exec 3>&-; rm part`,
  ],
  [
    'a shell, there and back',
    `exec 3> out; echo a >&3; mv out part; mv part out; ${untilGo}; echo b >&3; exec 3>&-`,
  ],
]

for (const mode of both)
  for (const [name, script] of writers)
    test(
      `a file that ${name} writes is renamed by another process: complete when closed (${mode})`,
      { skip },
      async () => {
        await withWorkflow(governed(mode), async workflow => {
          const [producer, consumer] = await together(workflow, script, 'cat out')
          assert.deepEqual([producer.code, consumer.stdout, consumer.code], [0, 'a\nb\n', 0], consumer.stderr)
          assert.equal(workflow.file('out')?.['state'], 'committed')
        })
      },
    )

test('a file that is not written any more is complete when it gets its name', { skip }, async () => {
  await withWorkflow(governed('update'), async workflow => {
    const script = `echo all > part; exec 5< part; mv part out; ${untilGo}; while [ ! -e done ]; do sleep 0.02; done`
    const producer = workflow.preloaded('S', 'sh', ['-c', script], { cwd: workflow.dir })
    const consumer = workflow.preloaded('Q', 'cat', ['out'], { cwd: workflow.dir })
    assert.equal((await consumer.done).stdout, 'all\n', 'it waited for the end of the producer')
    await workflow.preloaded(undefined, 'touch', ['go', 'done'], { cwd: workflow.dir }).done
    assert.equal((await producer.done).code, 0)
  })
})

for (const mode of both)
  test(
    `the files of a directory that is renamed are complete under their new names (${mode})`,
    { skip },
    async () => {
      await withWorkflow(governed(mode), async workflow => {
        const produce = `mkdir -p part/deep; echo 1 > part/one; echo 2 > part/deep/two; exec 3> part/open; echo a >&3
        mv part out; ${untilGo}; echo b >&3; exec 3>&-; while [ ! -e seen ]; do sleep 0.02; done`
        const consume = 'cat out/one out/deep/two out/open; touch seen'
        const [, consumer] = await together(workflow, produce, consume)
        assert.equal(consumer.stdout, '1\n2\na\nb\n', consumer.stderr)
      })
    },
  )

test(
  'a directory that is renamed away takes its files along: they are waited for again',
  { skip },
  async () => {
    await withWorkflow(governed('no_update', 'on_termination:0'), async workflow => {
      const produce = `mkdir out; echo old > out/f; mv out gone; touch moved; ${untilGo}; mkdir out; echo new > out/f`
      const consume = 'while [ ! -e moved ]; do sleep 0.02; done; cat out/f'
      const [, consumer] = await together(workflow, produce, consume)
      assert.equal(consumer.stdout, 'new\n', consumer.stderr)
    })
  },
)

test(
  'links to directories on the way are followed, made by a step or before the start',
  { skip },
  async () => {
    const dir = mkdtempSync('/dev/shm/millrace-test-')
    mkdirSync(`${dir}/out-real/sub`, { recursive: true })
    symlinkSync('out-real', `${dir}/early`)
    await withWorkflow(
      governed('update'),
      async workflow => {
        const produce = `ln -s out-real/sub late; ln -s early/sub/y last; ${untilGo}
        echo x > early/sub/x; echo y > late/y; echo z > late/../z`
        const consume =
          'while [ ! -L last ]; do sleep 0.02; done; cat late/x out-real/sub/y late/../z early/sub/../z last; cd late && cat y'
        const [producer, consumer] = await together(workflow, produce, consume)
        assert.deepEqual(
          [producer.code, consumer.stdout],
          [0, 'x\ny\nz\nz\ny\ny\n'],
          producer.stderr + consumer.stderr,
        )
        assert.deepEqual(
          workflow
            .ps()
            .filter(line => line.type === 'file')
            .map(line => line['path'])
            .sort(),
          ['out-real/sub', 'out-real/sub/x', 'out-real/sub/y', 'out-real/z'],
        )
      },
      dir,
    )
  },
)
