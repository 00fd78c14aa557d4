// Small writes are gathered before the kernel gets them, and small reads are served from memory. No program may be able to
// tell, but by the clock.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { rule, skip, start, step, tools, withWorkflow } from './harness.ts'

const plan = [
  'grace\t0.2',
  step(0, 'S'),
  step(1, 'Q'),
  rule('file', 'whole*', '0', 'on_termination:0', 'update'),
  rule('file', 'grow*', '0', 'on_termination:0', 'no_update'),
  rule('file', 'closed*', '0', 'on_close:1', 'no_update'),
  rule('file', 'full/*', '0', 'on_close:1', 'no_update'),
]
const fromTheFirst = { env: { MILLRACE_STREAM_GATHER: '1' } }
const outside = (): string => mkdtempSync(join(tmpdir(), 'millrace-gather-'))

test(
  'a program that looks at its file after small writes sees what it sees without the library',
  { skip },
  async () => {
    const folder = outside()
    await withWorkflow(plan, async workflow => {
      for (const kind of ['whole', 'grow'])
        for (let seed = 1; seed <= 4; seed++) {
          const file = join(folder, `${kind}-${seed}`)
          const plain = await start(tools.fixture('gather-calls'), [file, String(seed)]).done
          assert.equal(plain.code, 0, plain.stderr)
          const managed = workflow.path(`${kind}-${seed}`)
          const args = [managed, String(seed)]
          const ours = await workflow.preloaded('S', tools.fixture('gather-calls'), args, fromTheFirst).done
          assert.equal(ours.code, 0, ours.stderr)
          assert.equal(ours.stdout, plain.stdout, `${kind}, seed ${seed}`)
        }
    })
    rmSync(folder, { recursive: true })
  },
)

test('bytes that a killed process had written are in its file', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    for (const [name, count] of [
      ['grow-a', 7],
      ['whole-b', 2000],
    ] as const) {
      const line = `${tools.fixture('gather-steps')} ${name} ${count} die; true`
      await workflow.preloaded('S', 'sh', ['-c', line], { ...fromTheFirst, cwd: workflow.dir }).done
      const args = [workflow.path(name), String(count * 100), '300', '1']
      const consumer = await workflow.preloaded('Q', tools.fixture('read-pattern'), args).done
      assert.equal(consumer.code, 0, consumer.stderr)
      assert.equal(statSync(workflow.path(name)).size, count * 100)
    }
  })
})

test('a consumer gets what is gathered while its producer rests', { skip }, async () => {
  const folder = outside()
  await withWorkflow(plan, async workflow => {
    for (const count of [3, 1500]) {
      const [file, ack] = [workflow.path(`closed-${count}`), join(folder, `ack-${count}`)]
      const args = [file, String(count), 'ask', ack]
      const producer = workflow.preloaded('S', tools.fixture('gather-steps'), args, fromTheFirst)
      const line = `dd if=${file} bs=100 count=${count} of=${folder}/first 2>&1 && touch ${ack}`
      const consumer = await workflow.preloaded('Q', 'sh', ['-c', line]).done
      assert.equal(consumer.code, 0, consumer.stdout)
      assert.equal(readFileSync(join(folder, 'first')).length, count * 100)
      assert.equal((await producer.done).code, 0)
      assert.equal(statSync(file).size, 2 * count * 100)
    }
  })
  rmSync(folder, { recursive: true })
})

test(
  'small reads of a growing file are where they belong, whatever else is done with the descriptor',
  { skip },
  async () => {
    const folder = outside()
    for (const [seed, after] of ['1', '1', '32', '0'].entries())
      await withWorkflow(plan, async workflow => {
        const [file, ack, count] = [workflow.path('closed'), join(folder, `ack-${seed}`), '20000']
        const writing = [file, count, 'ask', ack]
        const producer = workflow.preloaded('S', tools.fixture('gather-steps'), writing)
        const reading = [file, count, ack, String(seed)]
        const env = { MILLRACE_STREAM_GATHER: after }
        const consumer = await workflow.preloaded('Q', tools.fixture('ahead-calls'), reading, { env }).done
        assert.equal(consumer.code, 0, `after ${after}, seed ${seed}: ${consumer.stderr}`)
        assert.equal((await producer.done).code, 0)
      })
    rmSync(folder, { recursive: true })
  },
)

test(
  'a read from memory into a page that cannot be written is an error, and no byte is lost',
  { skip },
  async () => {
    await withWorkflow(plan, async workflow => {
      const line = 'seq 1 30000 > grow-p; while [ ! -e read ]; do sleep 0.02; done'
      const producer = workflow.preloaded('S', 'sh', ['-c', line], { cwd: workflow.dir })
      const args = [workflow.path('grow-p')]
      const consumer = await workflow.preloaded('Q', tools.fixture('bad-pointers'), args, fromTheFirst).done
      writeFileSync(workflow.path('read'), '')
      assert.deepEqual([consumer.code, (await producer.done).code], [0, 0], consumer.stderr)
    })
  },
)

const mountable = process.getuid?.() === 0 && existsSync('/proc/mounts')

test(
  'a full disk is an error of the write that meets it, and what was taken is in the file',
  { skip: skip || (mountable ? false : 'needs root to mount a small tmpfs') },
  async t => {
    await withWorkflow(plan, async workflow => {
      const full = workflow.path('full')
      mkdirSync(full)
      const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'none', full])
      if (mounted.status !== 0) return t.skip('a tmpfs cannot be mounted here')
      try {
        const args = [join(full, 'a'), '1', 'fill']
        const producer = await workflow.preloaded('S', tools.fixture('gather-steps'), args, fromTheFirst).done
        assert.equal(producer.stdout, 'full 1\n')
        assert.equal(producer.code, 0)
      } finally {
        spawnSync('umount', ['-l', full])
      }
    })
  },
)
