// Bytes that pass between a producer and a consumer that run at the same time: every one is checked.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { randomFrom, rule, skip, step, tools, withWorkflow, type Workflow } from './harness.ts'

const plan = [
  'grace\t60', // a busy machine may take seconds to start the next producer
  step(0, 'S'),
  step(1, 'Q'),
  rule('file', 'grow*', '0', 'on_close:1', 'no_update'),
  rule('file', 'whole*', '0', 'on_close:1', 'update'),
  rule('file', 'parts*', '0', 'on_close:4', 'no_update'),
]

const pair = async (
  workflow: Workflow,
  name: string,
  size: number,
  seed: number,
  write: string,
  read: string,
  jitter: number,
): Promise<void> => {
  const args = (buffer: number, how: string): string[] =>
    [workflow.path(name), size, buffer, seed, jitter, how].map(String)
  const consumer = workflow.preloaded('Q', tools.fixture('read-pattern'), args(5000, read))
  const producer = workflow.preloaded('S', tools.fixture('write-pattern'), args(4000, write))
  const [consumed, produced] = await Promise.all([consumer.done, producer.done])
  const what = `${name} (${write} to ${read}, ${size} bytes, seed ${seed})`
  assert.equal(produced.code, 0, `${what}: producer: ${produced.stderr}`)
  assert.equal(consumed.timedOut, false, `${what}: the consumer hangs`)
  assert.equal(consumed.code, 0, `${what}: consumer: ${consumed.stderr}`)
}

const writers = ['write', 'stdio', 'writev', 'pwrite-backwards', 'mmap', 'rename', 'fork']
const readers = ['read', 'pread-random', 'stdio', 'readv', 'mmap', 'seek-end', 'copy']

test(
  'every way of writing reaches every way of reading, whole and growing',
  { skip, timeout: 300_000 },
  async () => {
    await withWorkflow(plan, async workflow => {
      let seed = 1
      for (const kind of ['grow', 'whole'])
        for (const write of writers)
          await Promise.all(
            readers.map(read => {
              const [number, name] = [++seed, `${kind}-${seed}`]
              return pair(workflow, name, 1 + ((number * 7919) % 60_000), number, write, read, 100)
            }),
          )
    })
  },
)

test(
  'a file that is cut and written again before its commit is read as it is at the end',
  { skip },
  async () => {
    await withWorkflow(plan, async workflow => {
      for (let seed = 1; seed <= 5; seed++)
        await pair(workflow, `whole-cut-${seed}`, 20_000 * seed, seed, 'truncate-first', 'read', 200)
    })
  },
)

test('a file that is closed four times ends with the fourth close', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    for (let seed = 1; seed <= 10; seed++)
      await pair(workflow, `parts-${seed}`, 4000 + 10_000 * seed, seed, 'append', 'read', 300)
  })
})

test('empty files and files of one byte', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    for (const kind of ['grow', 'whole'])
      for (const size of [0, 1]) await pair(workflow, `${kind}-tiny-${size}`, size, 3, 'write', 'read', 200)
  })
})

for (const kind of ['grow', 'whole'])
  test(`300 runs with random timing: no wrong byte (${kind})`, { skip, timeout: 600_000 }, async () => {
    const random = randomFrom(
      (kind === 'grow' ? 11 : 12) + 100 * Number(process.env['MILLRACE_STREAM_SEED'] ?? 0),
    )
    await withWorkflow(plan, async workflow => {
      const runs = Number(process.env['MILLRACE_STREAM_RUNS'] ?? 300)
      for (let run = 0; run < runs; run += 4)
        await Promise.all(
          [0, 1, 2, 3].map(i => {
            const size = Math.floor(random() ** 3 * 400_000)
            const jitter = Math.floor(random() ** 2 * 1500)
            return pair(workflow, `${kind}-run-${run + i}`, size, run + i + 1, 'write', 'read', jitter)
          }),
        )
    })
  })
