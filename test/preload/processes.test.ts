// Who holds a file open, who has ended and how: forks, execs, redirections, deaths.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  eventually,
  hasCommand,
  pause,
  rule,
  skip,
  start,
  step,
  tools,
  withWorkflow,
  type Workflow,
} from './harness.ts'

const plan = [
  'grace\t0.3',
  step(0, 'S'),
  step(1, 'Q'),
  rule('file', 'grow*', '0', 'on_close:1', 'no_update'),
  rule('file', 'whole*', '0', 'on_close:1', 'update'),
  rule('file', 'ended*', '0', 'on_termination:0', 'update'),
  rule('file', 'ticker*', '0', 'on_termination:0', 'no_update'),
]

const redirections: [string, string, string][] = [
  ['a shell writes with > and a consumer reads with <', 'seq 1 20000 > grow-a', 'md5sum < grow-a'],
  [
    'a group of commands is one description',
    '{ seq 1 100; sleep 0.1; seq 101 200; } > grow-b',
    'md5sum < grow-b',
  ],
  [
    'a subshell in the background is the last to close',
    '(sleep 0.2; seq 1 50) > grow-c & wait',
    'md5sum < grow-c',
  ],
  ['a pipe ends in a governed file', 'seq 1 5000 | sort -r | tee grow-d > /dev/null', 'cat grow-d | md5sum'],
  [
    'exec keeps the descriptor over the next program',
    'exec 3> whole-e; seq 1 9 >&3; exec sh -c "seq 10 19 >&3"',
    'md5sum < whole-e',
  ],
  [
    'dd in and out',
    'dd if=/dev/zero bs=1000 count=300 of=grow-f 2>/dev/null',
    'dd if=grow-f bs=512 2>/dev/null | md5sum',
  ],
  ['cp in, cp out', 'cp /bin/sh whole-g', 'cp whole-g /dev/stdout | md5sum'],
  [
    'awk writes and reads by itself',
    'awk \'BEGIN{for(i=0;i<3000;i++)print i > "grow-h"}\'',
    "awk '{n+=$1}END{print n}' grow-h",
  ],
  ['here-document into a file', 'cat > grow-i <<X\nhello\nX', 'cat grow-i'],
  ['read by the shell itself', 'echo one line > grow-j', 'read line < grow-j; echo "$line"'],
  ['mv into place', 'seq 1 4000 > tmp.k; mv tmp.k whole-k', 'md5sum < whole-k'],
  ['gzip and zcat', 'seq 1 30000 | gzip -n > grow-l', 'zcat < grow-l | md5sum'],
  [
    'the standard input by its name',
    'seq 1 3000 > grow-n',
    'md5sum /dev/stdin < grow-n; cat /dev/fd/0 < grow-n | wc -l',
  ],
  [
    'written under a name that is then removed',
    'exec 5> whole-o; rm whole-o; echo old >&5; echo new > whole-o; echo more >&5; exec 5>&-',
    'cat whole-o',
  ],
  ['tar through a file', 'tar cf grow-m -C /usr/include --mtime=@0 stdio.h', 'tar xOf grow-m | md5sum'],
]

for (const shell of ['bash', 'dash'])
  test(`redirections and pipes of ${shell}`, { skip, timeout: 300_000 }, async t => {
    for (const [name, produce, consume] of redirections)
      await t.test(name, async () => {
        await withWorkflow(plan, async workflow => {
          const consumer = workflow.exec('Q', shell, ['-c', consume], { cwd: workflow.dir, limit: 15_000 })
          await pause(30)
          const producer = workflow.exec('S', shell, ['-c', produce], { cwd: workflow.dir, limit: 15_000 })
          const [q, s] = await Promise.all([consumer.done, producer.done])
          assert.deepEqual([s.code, s.stderr], [0, ''])
          assert.deepEqual([q.code, q.stderr], [0, ''])
          const again = await workflow.exec('S', shell, ['-c', consume], { cwd: workflow.dir }).done
          assert.equal(q.stdout, again.stdout)
          assert.notEqual(q.stdout, '')
        })
      })
  })

for (const how of ['posix_spawn', 'vfork', 'fork'])
  test(
    `a file opened in the child of ${how} is closed when the program it became ends`,
    { skip },
    async () => {
      await withWorkflow(plan, async workflow => {
        const out = workflow.path('whole-spawned')
        const consumer = workflow.preloaded('Q', 'cat', [out])
        const producer = await workflow.preloaded('S', tools.fixture('spawn-redirected'), [
          how,
          out,
          'sh',
          '-c',
          'echo a; sleep 0.2; echo b',
        ]).done
        assert.deepEqual([producer.code, producer.stdout], [0, 'child 0\n'])
        assert.equal((await consumer.done).stdout, 'a\nb\n')
        assert.equal(workflow.file('whole-spawned')?.['closes'], 1)
      })
    },
  )

test('only the last of many descriptors on one description counts as its close', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const producer = workflow.preloaded('S', tools.fixture('juggle-descriptors'), [workflow.path('whole-j')])
    const consumer = workflow.preloaded('Q', 'cat', [workflow.path('whole-j')])
    assert.equal((await producer.done).code, 0)
    assert.equal((await consumer.done).stdout, 'abcdefg\n')
    assert.equal(workflow.file('whole-j')?.['closes'], 1)
  })
})

test(
  'threads that start programs into files: each file is closed once',
  { skip, timeout: 240_000 },
  async t => {
    if (!hasCommand('python3')) return t.skip('python3 is not installed')
    const script = `
import subprocess
from concurrent.futures import ThreadPoolExecutor
def one(i):
    with open("whole-%d" % i, "w") as f:
        subprocess.run(["sh", "-c", "echo x; sleep 0.00%d; echo y" % (i % 5)], stdout=f, check=True)
        f.write("z\\n")
with ThreadPoolExecutor(8) as p: list(p.map(one, range(120)))`
    await withWorkflow(plan, async workflow => {
      const names = Array.from({ length: 120 }, (_, i) => `whole-${i}`)
      const consumer = workflow.exec('Q', 'cat', names, { cwd: workflow.dir })
      const producer = await workflow.exec('S', 'python3', ['-c', script], { cwd: workflow.dir }).done
      assert.deepEqual([producer.code, producer.stderr], [0, ''])
      // the child and the parent share the description, so the parent's line goes where the position is
      assert.equal((await consumer.done).stdout.length, 120 * 6)
      for (const line of workflow.ps().filter(one => one.type === 'file')) assert.equal(line['closes'], 1)
    })
  },
)

test(
  'random writers leave the same files, and consumers see exactly those',
  { skip, timeout: 300_000 },
  async () => {
    for (let seed = 1; seed <= 25; seed++)
      await withWorkflow(plan, async workflow => {
        const plain = workflow.path('plain')
        const governed = workflow.path('ended-dir')
        mkdirSync(plain)
        mkdirSync(governed)
        assert.equal((await start(tools.fixture('random-writer'), [plain, String(seed)]).done).code, 0)
        const show = 'for i in 0 1 2 3 4 5 6 7 8 9; do md5sum < r-$i; done 2>&1 | sed s/.*r-/r-/'
        const expected = await start('bash', ['-c', show], { cwd: plain }).done
        const consumer = workflow.preloaded('Q', 'bash', ['-c', show], { cwd: governed })
        const producer = await workflow.preloaded('S', tools.fixture('random-writer'), [
          governed,
          String(seed),
        ]).done
        assert.equal(producer.code, 0, `seed ${seed}: ${producer.stderr}`)
        assert.equal((await consumer.done).stdout, expected.stdout, `seed ${seed}`)
        for (const line of workflow.ps().filter(one => one.type === 'file'))
          assert.equal(line['writers'], 0, `seed ${seed}: ${String(line['path'])} still has writers`)
      })
  },
)

test('on_termination waits for the last process of the step', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const consumer = workflow.exec('Q', 'cat', [workflow.path('ended-a')])
    const script = 'echo first > ended-a; (sleep 0.4; echo last >> ended-a) & exit 0'
    await workflow.exec('S', 'bash', ['-c', script], { cwd: workflow.dir }).done
    assert.equal((await consumer.done).stdout, 'first\nlast\n')
  })
})

test('a growing file without a commit before the end is followed to the end', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const consumer = workflow.preloaded('Q', 'md5sum', [workflow.path('ticker')])
    const script = 'for i in $(seq 1 30); do echo tick $i >> ticker; sleep 0.01; done'
    const producer = await workflow.preloaded('S', 'dash', ['-c', script], { cwd: workflow.dir }).done
    assert.equal(producer.code, 0)
    const plain = await workflow.preloaded('S', 'md5sum', [workflow.path('ticker')]).done
    assert.equal((await consumer.done).stdout, plain.stdout)
  })
})

const deaths: [string, string, string, boolean][] = [
  ['killed', 'grow', 'kill', true],
  ['killed', 'whole', 'kill', true],
  ['killed', 'ended', 'kill', true],
  ['killed', 'ticker', 'kill', true],
  ['dead by a fault', 'grow', 'segv', true],
  ['aborted', 'whole', 'abort', true],
  ['failed', 'grow', 'exit1', true],
  ['failed', 'ended', 'exit1', true],
  ['ended well without a close', 'grow', 'exit0', false],
  ['ended well without a close', 'ended', 'exit0', false],
  ['ended well although its writing child was killed', 'grow', 'child-killed', true],
]

for (const wrapped of [true, false])
  test(
    `a producer that dies, ${wrapped ? 'under exec' : 'with LD_PRELOAD only'}`,
    { skip, timeout: 300_000 },
    async t => {
      for (const [what, kind, how, fails] of deaths)
        await t.test(`${what}: ${kind}, ${how}`, async () => {
          await withWorkflow(plan, async workflow => {
            const path = workflow.path(`${kind}-x`)
            const run = (app: string, command: string, args: string[]) =>
              wrapped ? workflow.exec(app, command, args) : workflow.preloaded(app, command, args)
            const consumer = run('Q', 'cat', [path])
            await pause(50)
            await run('S', tools.fixture('write-then-die'), [path, how]).done
            const outcome = await consumer.done
            assert.equal(outcome.timedOut, false, 'the consumer hangs')
            if (fails) {
              assert.equal(outcome.code, 1, 'the consumer took a broken file for a whole one')
              assert.match(outcome.stderr, /Input\/output error/)
              assert.equal(workflow.file(`${kind}-x`)?.['state'], 'failed')
              assert.match(String(workflow.file(`${kind}-x`)?.['reason']), /killed|failed|status|signal/)
            } else {
              assert.deepEqual([outcome.code, outcome.stdout], [0, 'partial\n'])
            }
          })
        })
    },
  )

test('a consumer that comes after the failure gets the error at once', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    await workflow.exec('S', tools.fixture('write-then-die'), [workflow.path('grow-y'), 'kill']).done
    const late = await workflow.exec('Q', 'cat', [workflow.path('grow-y')], { limit: 5000 }).done
    assert.match(late.stderr, /Input\/output error/)
  })
})

test('a step that is run again after a failure can deliver', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    await workflow.exec('S', tools.fixture('write-then-die'), [workflow.path('grow-z'), 'kill']).done
    workflow.board(['step-begin', 'S'])
    const consumer = workflow.exec('Q', 'cat', [workflow.path('grow-z')])
    await workflow.exec('S', 'sh', ['-c', 'echo good > grow-z'], { cwd: workflow.dir }).done
    assert.equal((await consumer.done).stdout, 'good\n')
  })
})

test('a producer that never makes its file gives ENOENT once it has ended', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const consumer = workflow.exec('Q', 'cat', [workflow.path('whole-never')])
    await workflow.exec('S', 'true', []).done
    const outcome = await consumer.done
    assert.match(outcome.stderr, /No such file/)
  })
})

const waitsOf = (workflow: Workflow) => workflow.ps().filter(line => line.type === 'wait')

test('ps names who waits for whom', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const consumer = workflow.exec('Q', 'cat', [workflow.path('whole-w')])
    assert.ok(await eventually(() => waitsOf(workflow).length === 1))
    const [wait] = waitsOf(workflow)
    assert.equal(wait?.['step'], 'Q')
    assert.equal(wait?.['path'], 'whole-w')
    assert.deepEqual(wait?.['on'], ['S'])
    assert.match(String(wait?.['sentence']), /^Q \(pid \d+\) waits for the commit of whole-w, written by S$/)
    await workflow.exec('S', 'sh', ['-c', 'echo x > whole-w'], { cwd: workflow.dir }).done
    assert.equal((await consumer.done).stdout, 'x\n')
    assert.equal(waitsOf(workflow).length, 0)
  })
})

test('two steps that wait for each other are told so', { skip, timeout: 240_000 }, async () => {
  const circle = [
    step(0, 'A'),
    step(1, 'B'),
    rule('file', 'a', '0', 'on_close:1', 'update'),
    rule('file', 'b', '1', 'on_close:1', 'update'),
  ]
  await withWorkflow(circle, async workflow => {
    const run = (app: string, read: string, write: string) =>
      workflow.exec(app, 'sh', ['-c', `cat ${read} > tmp && mv tmp ${write}`], { cwd: workflow.dir })
    const both = [run('A', 'b', 'a'), run('B', 'a', 'b')]
    const [a, b] = await Promise.all(both.map(one => one.done))
    assert.ok(a && b && !a.timedOut && !b.timedOut, 'they hang')
    assert.match(`${a.stderr}${b.stderr}`, /deadlock/i)
    const report = workflow.ps().find(line => line.type === 'event' && line['kind'] === 'deadlock')
    assert.match(String(report?.['text']), /A \(pid \d+\) waits for b of B/)
    assert.match(String(report?.['text']), /B \(pid \d+\) waits for a of A/)
  })
})

test('a producer that takes its time is no deadlock', { skip, timeout: 240_000 }, async () => {
  const slow = [
    ['sh', '-c', 'sleep 1.8; echo late > whole-l'],
    [
      'python3',
      '-c',
      'import threading; t=threading.Timer(1.8, lambda: open("whole-l","w").write("late\\n")); t.start(); t.join()',
    ],
    ['node', '-e', 'setTimeout(() => require("fs").writeFileSync("whole-l", "late\\n"), 1800)'],
    ['bash', '-c', '(sleep 1.8; echo late > whole-l) & wait'],
    ['bash', '-c', 'sleep 1.8 | cat; read x < <(sleep 0.1; echo late); echo $x > whole-l'],
  ]
  await Promise.all(
    slow.map(([command = '', ...args]) =>
      withWorkflow(plan, async workflow => {
        const consumer = workflow.exec('Q', 'cat', [workflow.path('whole-l')])
        const producer = await workflow.exec('S', command, args, { cwd: workflow.dir }).done
        assert.equal(producer.code, 0, producer.stderr)
        const outcome = await consumer.done
        assert.deepEqual([outcome.stdout, outcome.stderr], ['late\n', ''], command)
      }),
    ),
  )
})

test('a wait ends at the time limit', { skip }, async () => {
  await withWorkflow(['limit\t1', ...plan], async workflow => {
    const outcome = await workflow.exec('Q', 'cat', [workflow.path('whole-late')]).done
    assert.match(outcome.stderr, /timed out/i)
  })
})

test('a static program is run and said to be unseen', { skip }, async t => {
  if (!existsSync(tools.fixture('static-writer'))) return t.skip('no static libc')
  await withWorkflow(plan, async workflow => {
    const consumer = workflow.exec('Q', 'cat', [workflow.path('ended-s')])
    const outcome = await workflow.exec('S', tools.fixture('static-writer'), [workflow.path('ended-s')]).done
    assert.match(outcome.stderr, /statically linked/)
    assert.equal((await consumer.done).stdout, 'static\n')
  })
})

test('exec passes on exit codes and signals', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    assert.equal((await workflow.exec('S', 'sh', ['-c', 'exit 7']).done).code, 7)
    assert.equal((await workflow.exec('S', 'sh', ['-c', 'kill -9 $$']).done).code, 137)
    assert.equal((await workflow.exec('S', '/no/such/program', []).done).code, 127)
    writeFileSync(workflow.path('plain'), 'x')
    assert.equal((await workflow.exec('S', workflow.path('plain'), []).done).code, 126)
    assert.equal(readFileSync(workflow.path('plain'), 'utf8'), 'x')
  })
})
