// Killed at any moment: the others end, with the truth or with a reason, and nothing is left behind.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  eventually,
  pause,
  randomFrom,
  rule,
  skip,
  start,
  step,
  tools,
  withWorkflow,
  Workflow,
  type Line,
} from './harness.ts'

const plan = [
  'grace\t0.2',
  step(0, 'S'),
  step(1, 'Q'),
  rule('file', 'churn-*', '0', 'on_close:1', 'no_update'),
  rule('file', 'grow*', '0', 'on_close:1', 'no_update'),
  rule('file', 'whole*', '0', 'on_close:1', 'update'),
  rule('file', 'ended*', '0', 'on_termination:0', 'no_update'),
]

test(
  'the board survives processes killed in the middle of its changes',
  { skip, timeout: 300_000 },
  async () => {
    const random = randomFrom(5)
    await withWorkflow(plan, async workflow => {
      for (let round = 0; round < 40; round++) {
        const churning = [0, 1, 2].map(i =>
          workflow.preloaded('S', tools.fixture('churn-files'), [workflow.dir, String(round * 3 + i)]),
        )
        await pause(15 + random() * 30)
        for (const one of churning) one.child.kill('SIGKILL')
        await Promise.all(churning.map(one => one.done))
        const shown = workflow.board(['ps'])
        assert.equal(shown.status, 0)
        // a fork that was announced and never came is forgotten after two seconds
        const gone = await eventually(() => !workflow.ps().some(line => line.type === 'process'))
        assert.ok(gone, `round ${round}: dead processes stay booked`)
        for (const line of workflow.ps().filter(one => one.type === 'file'))
          assert.equal(line['writers'], 0, `round ${round}: ${String(line['path'])} still has writers`)
      }
      // and still works
      workflow.board(['step-begin', 'S'])
      const consumer = workflow.preloaded('Q', 'cat', [workflow.path('whole-after')])
      await workflow.preloaded('S', 'sh', ['-c', 'echo fine > whole-after'], { cwd: workflow.dir }).done
      assert.equal((await consumer.done).stdout, 'fine\n')
    })
  },
)

test(
  'a killed producer or consumer at any point: right, or an error, never wrong, never for ever',
  { skip, timeout: 300_000 },
  async () => {
    const random = randomFrom(77)
    const ends = { right: 0, failed: 0 }
    for (let round = 0; round < 48; round++)
      await withWorkflow(plan, async workflow => {
        const kind = ['grow', 'whole', 'ended'][round % 3] ?? 'grow'
        const size = String(Math.floor(20_000 + random() * 200_000))
        const args = (how: string): string[] => [
          workflow.path(`${kind}-k`),
          size,
          '4000',
          String(round),
          '9000',
          how,
        ]
        const wrapped = round % 2 === 0
        const run = (app: string, name: string, how: string) =>
          wrapped
            ? workflow.exec(app, tools.fixture(name), args(how), { limit: 20_000 })
            : workflow.preloaded(app, tools.fixture(name), args(how), { limit: 20_000 })
        const consumers = [run('Q', 'read-pattern', 'read'), run('Q', 'read-pattern', 'stdio')]
        const producer = run('S', 'write-pattern', round % 5 === 0 ? 'fork' : 'write')
        // a producer that never started is waited for, rightly; so not before it is there
        const began = (line: Line): boolean =>
          line['name'] === 'S' && [line['running'], line['endedOk'], line['endedFailed']].some(n => n !== 0)
        assert.ok(await eventually(() => workflow.ps().some(began)))
        await pause(random() * 80)
        const victim = round % 4 === 3 ? consumers[0] : producer
        const before = victim?.child.exitCode ?? null
        victim?.child.kill('SIGKILL') // under exec: the keeper dies, the program lives on
        const produced = await producer.done
        for (const consumer of consumers) {
          const outcome = await consumer.done
          assert.equal(outcome.timedOut, false, `round ${round}: a consumer hangs`)
          if (consumer === victim) continue
          assert.notEqual(outcome.code, 3, `round ${round}: ${outcome.stderr}`)
          if (outcome.code === 0) ends.right++
          else assert.match(outcome.stderr, /Input\/output error/, `round ${round}`)
          if (outcome.code !== 0) ends.failed++
          if (before === 0 && victim === producer)
            assert.equal(outcome.code, 0, `round ${round}: ${produced.stderr}`)
        }
      })
    assert.ok(ends.right > 5 && ends.failed > 5, `not a mixture: ${JSON.stringify(ends)}`)
  },
)

test('threads on one file, with signals that do I/O in between', { skip, timeout: 300_000 }, async () => {
  await withWorkflow(plan, async workflow => {
    for (const kind of ['grow', 'whole'])
      for (let seed = 1; seed <= 4; seed++) {
        const args = [workflow.path(`${kind}-t${seed}`), String(400_000 * seed), String(seed)]
        const consumer = workflow.preloaded('Q', tools.fixture('threads-share'), ['read', ...args])
        const producer = workflow.preloaded('S', tools.fixture('threads-share'), ['write', ...args])
        const [q, s] = await Promise.all([consumer.done, producer.done])
        assert.deepEqual(
          [s.code, q.code, q.stdout],
          [0, 0, 'right\n'],
          `${kind} ${seed} ${s.stderr} ${q.stderr}`,
        )
      }
  })
})

test('create refuses while the workflow lives and clears away a dead one', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const text = [
      'millrace-plan\t1',
      `workflow\t${workflow.name}`,
      `dir\t${workflow.dir}`,
      'step\t0\tN\t-',
      'end',
      '',
    ].join('\n')
    const sleeper = workflow.exec('S', 'sleep', ['20'])
    await pause(200)
    const refused = workflow.board(['create'], text)
    assert.equal(refused.status, 3)
    assert.match(refused.stderr, /is running/)
    assert.equal(workflow.board(['destroy']).status, 1)
    sleeper.child.kill('SIGTERM')
    await sleeper.done
    assert.equal(workflow.board(['create'], text).status, 0)
    assert.ok(workflow.ps().some(line => line.type === 'step' && line['name'] === 'N'))
    const owned = workflow.board(['create', '--owner', String(process.pid)], text)
    assert.equal(owned.status, 0)
    assert.equal(workflow.board(['create'], text).status, 3, 'an owned board was replaced')
  })
})

test('destroy --force ends all waits', { skip }, async () => {
  const workflow = new Workflow(plan)
  const consumer = workflow.exec('Q', 'cat', [workflow.path('whole-x')])
  await pause(200)
  workflow.destroy()
  assert.match((await consumer.done).stderr, /Input\/output error/)
  assert.equal(workflow.board(['ps']).status, 4)
})

test('bad plans are refused with their line', { skip }, () => {
  const cases: [string, RegExp][] = [
    ['rule\tfile\texact\tf\t7\ton_close:1\tupdate', /plan line 5: producers/],
    ['rule\tfile\texact\tf\t-\ton_close:1\tupdate', /plan line 5: a rule needs a producer/],
    ['rule\tfile\texact\tf\t0\ton_close:0\tupdate', /plan line 5: unknown commit/],
    ['rule\tfile\texact\tf\t0\ton_file\tupdate', /plan line 5: on_file needs/],
    ['rule\tfile\texact\tf\t0\ton_n_files:3\tupdate', /plan line 5: on_n_files is for directories/],
    ['rule\tfile\texact\t/abs\t0\ton_close:1\tupdate', /plan line 5: bad pattern/],
    ['what\tever', /plan line 5: unknown record/],
    ['step\t5\tX\t-', /plan line 5: step ids/],
  ]
  for (const [line, expected] of cases) {
    const text = ['millrace-plan\t1', 'workflow\tbad-plan', 'dir\t/tmp', step(0, 'S'), line, 'end', ''].join(
      '\n',
    )
    const made = Workflow.prototype.board.call({ name: 'bad-plan' } as Workflow, ['create'], text)
    assert.equal(made.status, 2, line)
    assert.match(made.stderr, expected)
  }
  const cut = Workflow.prototype.board.call(
    { name: 'bad-plan' } as Workflow,
    ['create'],
    'millrace-plan\t1\nworkflow\tx\n',
  )
  assert.match(cut.stderr, /cut short/)
})

test('without a board, or with the switch off, nothing happens', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const off = { ...workflow.env('Q'), MILLRACE_STREAM_OFF: '1' }
    const missing = await start('cat', [workflow.path('whole-q')], { env: off, limit: 5000 }).done
    assert.match(missing.stderr, /No such file/)
    const nobody = { ...workflow.env('Q'), CAPIO_WORKFLOW_NAME: 'no-such-workflow' }
    const alone = await start('cat', [workflow.path('whole-q')], { env: nobody, limit: 5000 }).done
    assert.match(alone.stderr, /no board of workflow no-such-workflow[^]*No such file/)
  })
})

test('nothing is left in /dev/shm', { skip }, () => {
  const left = readdirSync('/dev/shm').filter(
    name => name.includes(`test-${process.pid}-`) || name.includes('bad-plan'),
  )
  assert.deepEqual(left, [])
  assert.equal(existsSync('/dev/shm/millrace-test-none'), false)
})

test('a keeper killed together with its programs: what they had open is not complete', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    // The library does not see the last of the three processes: only the keeper could say how it ended.
    const script = `(echo half; ${tools.fixture('static-sleeper')}; echo more) > grow-half`
    const producer = workflow.exec('S', 'sh', ['-c', script], { cwd: workflow.dir })
    const consumer = workflow.exec('Q', 'cat', ['grow-half'], { cwd: workflow.dir })
    const pids = (): number[] =>
      workflow
        .ps()
        .filter(line => line.type === 'process' && line['step'] === 'S')
        .map(line => Number(line['pid']))
        // A step that is about to begin has none.
        .filter(pid => pid > 0 && existsSync(`/proc/${pid}`))
    const runs = (pid: number): boolean => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('static-slee')
    assert.ok(await eventually(() => pids().some(runs)), 'all three have begun')
    const all = pids()
    assert.ok(all.includes(producer.pid), 'the keeper is one of them')
    for (const pid of [producer.pid, ...all]) process.kill(pid, 'SIGKILL')
    const { code, stderr } = await consumer.done
    assert.match(stderr, /Input\/output error/)
    assert.equal(code, 1)
    assert.equal(workflow.file('grow-half')?.['state'], 'failed')
  })
})
