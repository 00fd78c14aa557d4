// Memory that is full: files that still grow move to disk, and no program notices.
import assert from 'node:assert/strict'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { rule, start, step, tools, Workflow } from './harness.ts'
import { skipSmall, withSmallMemory, withSmallWorkflow } from './small-memory.ts'

const options = { skip: skipSmall, timeout: 300_000 }

const writers = ['write', 'stdio', 'writev', 'pwrite-backwards', 'mmap', 'rename', 'fork', 'append']
const readers = ['read', 'pread-random', 'stdio', 'readv', 'mmap', 'seek-end', 'copy']

for (const kind of ['g', 'u', 'e'])
  test(
    `a file three times as large as memory, however it is written and read (${kind})`,
    options,
    async () => {
      await withSmallWorkflow('1m', async (workflow, { layer }) => {
        const size = 3_000_000
        // Closed four times: with on_close it would be complete at the first.
        const used = kind === 'e' ? writers : writers.filter(how => how !== 'append')
        for (const [i, write] of used.entries()) {
          const name = `${kind}-${write}`
          const seed = i + 1
          const args = (buffer: number, how: string): string[] =>
            [workflow.path(name), size, buffer, seed, 0, how].map(String)
          const producer = workflow.exec('P', tools.fixture('write-pattern'), args(200_000, write))
          const consumers = [readers[i % readers.length], readers[(i + 3) % readers.length]].map(how =>
            workflow.preloaded('C', tools.fixture('read-pattern'), args(100_000, how ?? 'read')),
          )
          const ends = await Promise.all([producer.done, ...consumers.map(one => one.done)])
          for (const end of ends) assert.equal(end.code, 0, `${name}: ${end.stderr}`)
          assert.ok(readdirSync(layer).length > i, `${name} has not moved`)
          workflow.board(['step-begin', 'P'])
        }
      })
    },
  )

test('a description that several programs share goes on where the last has stopped', options, async () => {
  await withSmallWorkflow('1m', async workflow => {
    const script =
      '{ head -c 700000 /dev/zero; head -c 700000 /dev/zero | tr "\\0" b; (head -c 9 /dev/zero | tr "\\0" c); } > g1; ' +
      'head -c 700000 /dev/zero | tr "\\0" d >> e1; head -c 700000 /dev/zero | tr "\\0" e >> e1'
    const producer = workflow.exec('P', 'sh', ['-c', script], { cwd: workflow.dir })
    const consumer = workflow.preloaded(
      'C',
      'sh',
      ['-c', 'md5sum < g1; (head -c 700001; cat) < e1 | md5sum'],
      {
        cwd: workflow.dir,
      },
    )
    const [made, read] = await Promise.all([producer.done, consumer.done])
    assert.equal(made.code, 0, made.stderr)
    assert.equal(read.code, 0, read.stderr)
    const plain = await start('sh', ['-c', `${script}; md5sum < g1; md5sum < e1`], {
      cwd: mkdtempSync(join(tmpdir(), 'mr-')),
    }).done
    assert.equal(read.stdout, plain.stdout)
  })
})

test('what has moved looks like a file: to ls, find, stat, readlink and tar', options, async () => {
  await withSmallWorkflow('1m', async (workflow, { memory }) => {
    const made = await workflow.exec('P', 'sh', ['-c', 'head -c 1500000 /dev/zero > g1; ln -s g1 own'], {
      cwd: workflow.dir,
    }).done
    assert.equal(made.code, 0, made.stderr)
    assert.ok(lstatSync(workflow.path('g1')).isSymbolicLink())
    const script =
      'find . -type f; find . -type l; stat -c "%F %s" g1; readlink g1 || echo no link; readlink own; tar c g1 | tar tv | cut -c1; ' +
      'python3 -c "import os; print([(e.name, e.is_symlink(), e.is_file(follow_symlinks=False)) for e in sorted(os.scandir(), key=str)])"'
    const seen = await workflow.preloaded('C', 'sh', ['-c', script], { cwd: workflow.dir }).done
    assert.equal(
      seen.stdout,
      "./g1\n./own\nregular file 1500000\nno link\ng1\n-\n[('g1', False, True), ('own', True, False)]\n",
    )
    assert.ok(statfsSync(memory).bfree > 0)
  })
})

test('files that no rule names get room when others can move', options, async () => {
  await withSmallWorkflow('1m', async workflow => {
    const script =
      'exec 7> g1; head -c 900000 /dev/zero >&7; head -c 900000 /dev/zero > plain; stat -c %s plain; echo end >&7'
    const made = await workflow.exec('P', 'sh', ['-c', script], { cwd: workflow.dir }).done
    assert.deepEqual([made.code, made.stdout], [0, '900000\n'], made.stderr)
    assert.equal(readFileSync(workflow.path('g1')).length, 900_004)
  })
})

test(
  'random operations on files in memory that is always full leave what they leave on disk',
  options,
  async () => {
    for (let seed = 1; seed <= 12; seed++)
      await withSmallMemory('96k', async ({ memory, layer }) => {
        const plan = [
          `layer\t${layer}`,
          step(0, 'P'),
          rule('file', 'r-*', '0', 'on_termination:0', 'no_update'),
        ]
        const workflow = new Workflow(plan, join(memory, 'files'))
        const plain = mkdtempSync(join(tmpdir(), 'mr-'))
        try {
          const one = await start(tools.fixture('random-writer'), [plain, String(seed)]).done
          const two = await workflow.exec('P', tools.fixture('random-writer'), [workflow.dir, String(seed)])
            .done
          assert.equal(two.code, one.code, `seed ${seed}: ${two.stderr}`)
          assert.deepEqual(readdirSync(workflow.dir).sort(), readdirSync(plain).sort())
          for (const name of readdirSync(plain))
            assert.ok(
              readFileSync(join(plain, name)).equals(readFileSync(workflow.path(name))),
              `seed ${seed}: ${name} differs`,
            )
        } finally {
          workflow.board(['destroy', '--force'])
          rmSync(plain, { recursive: true, force: true })
        }
      })
  },
)
