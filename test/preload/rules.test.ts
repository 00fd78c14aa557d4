// Commit and firing rules, patterns and their precedence, files that no rule names.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  eventually,
  rule,
  skip,
  step,
  tools,
  withWorkflow,
  type Line,
  type Running,
  type Workflow,
} from './harness.ts'

const sh = (workflow: Workflow, app: string, script: string): Running =>
  workflow.exec(app, 'sh', ['-c', script], { cwd: workflow.dir })

const isOver = (running: Running): boolean =>
  running.child.exitCode !== null || running.child.signalCode !== null

/** A process of the program waits, as the board says, for a file that is not complete; the program has not ended. */
const waits = async (workflow: Workflow, running: Running, what?: 'data'): Promise<boolean> => {
  const isWaiting = (): boolean => {
    const seen = workflow.ps()
    const paths = seen
      .filter(line => line.type === 'wait' && descends(Number(line['pid']), running.pid))
      .filter(line => what === undefined || line['for'] === what)
      .map(line => line['path'])
    return (
      paths.length > 0 &&
      paths.every(path => !isSettled(seen.find(line => line.type === 'file' && line['path'] === path)))
    )
  }
  await eventually(() => isOver(running) || isWaiting(), 20_000)
  return !isOver(running) && isWaiting()
}

const descends = (pid: number, from: number): boolean => {
  if (pid === from || pid <= 1) return pid === from
  try {
    const parent = /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return descends(Number(parent), from)
  } catch {
    return false // it has ended
  }
}

/** Scripts stop here until the test opens the gate. No rule names these files. */
const gate = (name = 'go'): string => `until test -e ${name}; do sleep 0.02; done`
const openGate = (workflow: Workflow, name = 'go'): void => writeFileSync(workflow.path(name), '')

const isSettled = (file: Line | undefined): boolean =>
  file?.['state'] === 'committed' || file?.['state'] === 'failed'

test('on_close:3 counts the closes of producers only', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:3', 'update')]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'S', 'echo 1 >> f; echo 2 >> f').done
    await sh(workflow, 'Q', 'echo not counted >> other; : >> other').done
    assert.ok(await waits(workflow, consumer), 'committed after two closes')
    await sh(workflow, 'S', 'cat f > /dev/null; echo 3 >> f').done
    assert.equal((await consumer.done).stdout, '1\n2\n3\n')
  })
})

test('on_termination waits for all producers', { skip }, async () => {
  const plan = [
    step(0, 'A'),
    step(1, 'B'),
    step(2, 'Q'),
    rule('file', 'f', '0,1', 'on_termination:0', 'update'),
  ]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'A', 'echo a >> f').done
    assert.ok(await waits(workflow, consumer), 'committed although B has not run')
    await sh(workflow, 'B', 'echo b >> f').done
    assert.equal((await consumer.done).stdout, 'a\nb\n')
  })
})

test('on_termination:2 counts instances', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_termination:2', 'update')]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'S', 'echo a >> f').done
    assert.ok(await waits(workflow, consumer), 'committed after one instance')
    await sh(workflow, 'S', 'echo b >> f').done
    assert.equal((await consumer.done).stdout, 'a\nb\n')
  })
})

test('a known number of instances must have ended', { skip }, async () => {
  const plan = [step(0, 'S', '2'), step(1, 'Q'), rule('file', 'f', '0', 'on_termination:0', 'update')]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'S', 'echo a >> f').done
    assert.ok(await waits(workflow, consumer), 'committed after one of two instances')
    await sh(workflow, 'S', 'echo b >> f').done
    assert.equal((await consumer.done).stdout, 'a\nb\n')
  })
})

test('on_file commits with the files it names, one after the other', { skip }, async () => {
  const plan = [
    step(0, 'S'),
    step(1, 'Q'),
    rule('file', 'done', '0', 'on_close:1', 'update'),
    rule('file', 'middle', '0', 'on_file', 'update', 'done'),
    rule('file', 'f', '0', 'on_file', 'no_update', 'middle,done'),
  ]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    const producer = sh(
      workflow,
      'S',
      `echo 1 > f; echo 2 >> f; ${gate()}; echo 3 >> f; echo ok > done; ${gate('end')}`,
    )
    assert.ok(await waits(workflow, consumer), 'committed before the file it depends on')
    openGate(workflow)
    assert.equal((await consumer.done).stdout, '1\n2\n3\n')
    assert.equal(isOver(producer), false, 'it waited for the end of the producer')
    openGate(workflow, 'end')
    await producer.done
  })
})

test('on_file fails with the file it names', { skip }, async () => {
  const plan = [
    step(0, 'S'),
    step(1, 'T'),
    step(2, 'Q'),
    rule('file', 'flag', '1', 'on_close:1', 'update'),
    rule('file', 'f', '0', 'on_file', 'update', 'flag'),
  ]
  await withWorkflow(plan, async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'S', 'echo 1 > f').done
    await sh(workflow, 'T', 'exec > flag; kill -9 $$').done
    assert.match((await consumer.done).stderr, /Input\/output error/)
  })
})

for (const mode of ['update', 'no_update'] as const)
  test(`a directory is listed when on_n_files is reached (${mode})`, { skip }, async () => {
    const plan = [step(0, 'S'), step(1, 'Q'), rule('dir', 'out', '0', 'on_n_files:3', mode)]
    await withWorkflow(plan, async workflow => {
      const consumer = sh(workflow, 'Q', 'ls out; cat out/a out/b out/c')
      await sh(workflow, 'S', 'mkdir out; echo 1 > out/a; echo 2 > out/b').done
      assert.ok(await waits(workflow, consumer), 'listed before the third file')
      await sh(workflow, 'S', 'echo 3 > out/c').done
      assert.equal((await consumer.done).stdout, 'a\nb\nc\n1\n2\n3\n')
    })
  })

test('a directory without a number is listed when its producers have ended', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('dir', 'out', '0', 'on_termination:0', 'update')]
  await withWorkflow(plan, async workflow => {
    mkdirSync(workflow.path('out'))
    const consumer = sh(workflow, 'Q', 'ls out')
    const producer = sh(
      workflow,
      'S',
      `for i in 1 2 3 4; do echo $i > out/f$i; done; ${gate()}; echo > out/f5`,
    )
    assert.ok(await waits(workflow, consumer))
    openGate(workflow)
    await Promise.all([producer.done, consumer.done])
    assert.equal((await consumer.done).stdout, 'f1\nf2\nf3\nf4\nf5\n')
  })
})

test('files of a directory have their own rules', { skip }, async () => {
  const plan = [
    step(0, 'S'),
    step(1, 'Q'),
    rule('file', 'out/late', '0', 'on_termination:0', 'update'),
    rule('dir', 'out', '0', 'on_n_files:100', 'no_update'),
  ]
  await withWorkflow(plan, async workflow => {
    const early = sh(workflow, 'Q', 'cat out/early')
    const late = sh(workflow, 'Q', 'cat out/late')
    const producer = sh(
      workflow,
      'S',
      `mkdir out; echo l > out/late; echo e > out/early; ${gate()}; echo x >> out/late`,
    )
    assert.equal((await early.done).stdout, 'e\n')
    assert.equal(isOver(producer), false, 'the early file waited for the end')
    openGate(workflow)
    assert.equal((await late.done).stdout, 'l\nx\n')
    await producer.done
  })
})

const looks: [string, string][] = [
  ['test -e', 'test -e f && echo yes'],
  ['stat', 'stat -c %s f'],
  ['access', 'test -r f && echo yes'],
  ['find by name', 'ls -1 f'],
]

for (const [name, script] of looks)
  test(`looking at a file that will come waits: ${name}`, { skip }, async () => {
    const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:1', 'update')]
    await withWorkflow(plan, async workflow => {
      const consumer = sh(workflow, 'Q', script)
      assert.ok(await waits(workflow, consumer))
      await sh(workflow, 'S', 'echo x > f').done
      const outcome = await consumer.done
      assert.deepEqual([outcome.code, outcome.stdout !== ''], [0, true])
    })
  })

test('what no rule names is a plain file: missing is missing, present is read', { skip }, async () => {
  const plan = [
    step(0, 'S'),
    step(1, 'Q'),
    rule('file', '*.dat', '0', 'on_close:1', 'update'),
    'exclude\tglob\t*.tmp.dat',
  ]
  await withWorkflow(plan, async workflow => {
    const missing = await sh(workflow, 'Q', 'cat nothing; cat no.tmp.dat').done
    assert.match(missing.stderr, /nothing: No such file.*\n.*no\.tmp\.dat: No such file/)
    writeFileSync(workflow.path('input'), 'given\n')
    writeFileSync(workflow.path('x.tmp.dat'), 'excluded\n')
    assert.equal((await sh(workflow, 'Q', 'cat input x.tmp.dat').done).stdout, 'given\nexcluded\n')
  })
})

test('a file left over from before is not taken for this run’s', { skip }, async () => {
  for (const mode of ['update', 'no_update'] as const) {
    const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:1', mode)]
    await withWorkflow(plan, async workflow => {
      writeFileSync(workflow.path('f'), 'stale stale stale\n')
      const consumer = sh(workflow, 'Q', 'cat f')
      assert.ok(await waits(workflow, consumer), 'read a stale file')
      await sh(workflow, 'S', 'echo fresh > f').done
      assert.equal((await consumer.done).stdout, 'fresh\n')
    })
  }
})

test('a producer reads back what it writes, without waiting', { skip }, async () => {
  const plan = [step(0, 'S'), rule('file', 'f', '0', 'on_termination:0', 'update')]
  await withWorkflow(plan, async workflow => {
    const outcome = await sh(workflow, 'S', 'echo a > f; cat f; ls; stat -c %s f; test -e g || echo no').done
    assert.equal(outcome.stdout, 'a\nf\n2\nno\n')
  })
})

test('relative paths, .., links to the directory and descriptors of directories', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'd/f', '0', 'on_close:1', 'update')]
  await withWorkflow(plan, async workflow => {
    mkdirSync(workflow.path('d/e'), { recursive: true })
    const link = `${workflow.dir}-link`
    symlinkSync(workflow.dir, link)
    const ways = [
      `cd ${workflow.dir}/d && cat f`,
      `cd ${workflow.dir}/d/e && cat ../f`,
      `cat ${workflow.dir}//d/./e/../f`,
      `cd / && cat ${workflow.dir.slice(1)}/d/f`,
      `cd ${workflow.dir}/.. && cat ./${workflow.dir.split('/').pop()}/d/f`,
      `find ${workflow.dir}/d -name f -newermt @0 -printf '' ; cat ${workflow.dir}/d/f`,
      `python3 -c "import os; d=os.open('${workflow.dir}/d',os.O_RDONLY); print(os.read(os.open('f',os.O_RDONLY,dir_fd=d),9).decode(),end='')"`,
    ]
    const consumers = ways.map(script => workflow.exec('Q', 'sh', ['-c', script]))
    const aliased = workflow.preloaded('Q', 'cat', [`${link}/d/f`], { env: { CAPIO_DIR: link } })
    for (const [i, consumer] of consumers.entries())
      assert.ok(await waits(workflow, consumer), `${ways[i]} did not wait`)
    assert.ok(await waits(workflow, aliased), 'the link was not followed')
    await sh(workflow, 'S', 'echo deep > d/f').done
    for (const consumer of [...consumers, aliased]) assert.equal((await consumer.done).stdout, 'deep\n')
    rmSync(link)
  })
})

test('a file removed and made again is waited for again', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_termination:0', 'no_update')]
  await withWorkflow(plan, async workflow => {
    const producer = sh(workflow, 'S', `echo wrong > f; rm f; echo > removed; ${gate()}; echo right > f`)
    await eventually(() => existsSync(workflow.path('removed')))
    const consumer = sh(workflow, 'Q', 'cat f')
    assert.ok(await waits(workflow, consumer))
    openGate(workflow)
    await producer.done
    assert.equal((await consumer.done).stdout, 'right\n')
  })
})

for (const [what, script] of [
  ['removed and made again', `echo first > f; ${gate()}; rm f; echo second > f`],
  ['cut and written again', `echo first > f; ${gate()}; echo 2nd > f`],
  ['replaced by rename', `echo first > f; ${gate()}; echo second > g; mv g f`],
])
  test(
    `bytes that a reader has seen and that are ${what} are an error, not a mixture`,
    { skip },
    async () => {
      const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_termination:0', 'no_update')]
      await withWorkflow(plan, async workflow => {
        const producer = sh(workflow, 'S', script ?? '')
        const consumer = sh(workflow, 'Q', 'dd bs=6 if=f status=none')
        assert.ok(await waits(workflow, consumer, 'data'))
        openGate(workflow)
        const outcome = await consumer.done
        assert.equal(outcome.stdout, 'first\n')
        assert.match(outcome.stderr, /Input\/output error/)
        assert.equal((await producer.done).code, 0)
        assert.match((await sh(workflow, 'Q', 'cat f').done).stdout, /second|2nd/)
      })
    },
  )

const match = (workflow: Workflow, path: string): Record<string, unknown> =>
  JSON.parse(workflow.board(['match', path]).stdout) as Record<string, unknown>

test('patterns: the first that matches wins, * and ? also match /', { skip }, async () => {
  const plan = [
    step(0, 'S'),
    rule('file', 'a/exact', '0', 'on_close:1', 'update'),
    rule('file', 'a/[xy]?.dat', '0', 'on_close:2', 'update'),
    rule('file', 'a/[!xy]*', '0', 'on_close:3', 'update'),
    rule('file', 'b?c', '0', 'on_close:4', 'update'),
    rule('file', '*.end', '0', 'on_close:5', 'update'),
    rule('dir', 'dirs/*', '0', 'on_n_files:7', 'update'),
    'rule\tfile\tglob\tq\\*\t0\ton_close:8\tupdate',
    'exclude\tglob\t*.log',
  ]
  await withWorkflow(plan, async workflow => {
    const cases: [string, string | null][] = [
      ['a/exact', 'on_close:1'],
      ['a/x1.dat', 'on_close:2'],
      ['a/x12.dat', null],
      ['a/zebra', 'on_close:3'],
      ['b/c', 'on_close:4'],
      ['bcc', 'on_close:4'],
      ['deep/er/x.end', 'on_close:5'],
      ['dirs/one', 'on_n_files:7'],
      ['dirs/one/file', 'on_close:1'],
      ['dirs/one/deeper/file', 'on_close:1'],
      ['dirs/x.end', 'on_n_files:7'],
      ['dirs/one/x.end', 'on_close:5'],
      ['q*', 'on_close:8'],
      ['qq', null],
      ['deep/x.log', null],
      ['a', null],
    ]
    for (const [path, commit] of cases) {
      const found = match(workflow, path)
      assert.equal(found['rule'] === null ? null : found['commit'], commit, path)
    }
  })
})

test('step-end settles what is still open', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:9', 'update')]
  await withWorkflow(['grace\t60', ...plan], async workflow => {
    const consumer = sh(workflow, 'Q', 'cat f')
    await sh(workflow, 'S', 'echo a > f').done
    assert.ok(await waits(workflow, consumer))
    assert.equal(workflow.board(['step-end', 'S', 'ok']).status, 0)
    assert.equal((await consumer.done).stdout, 'a\n')
    const other = sh(workflow, 'Q', 'cat g')
    assert.match((await other.done).stderr, /No such file/)
  })
})

test('wait says when a file is committed, has failed or takes too long', { skip }, async () => {
  const plan = [step(0, 'S'), rule('file', '*', '0', 'on_close:1', 'update')]
  await withWorkflow(plan, async workflow => {
    assert.equal(workflow.board(['wait', '--timeout', '0.3', 'f']).status, 5)
    await sh(workflow, 'S', 'echo a > f').done
    assert.equal(workflow.board(['wait', 'f']).status, 0)
    await sh(workflow, 'S', 'exec > g; kill -9 $$').done
    const failed = workflow.board(['wait', 'g'])
    assert.equal(failed.status, 1)
    assert.match(failed.stderr, /g failed: process \d+ of S was killed/)
  })
})

test('several producers of one file at different offsets', { skip }, async () => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'f', '0', 'on_close:3', 'no_update')]
  await withWorkflow(plan, async workflow => {
    const path = workflow.path('f')
    const consumer = workflow.preloaded('Q', 'md5sum', [path])
    const part = (k: number): Running =>
      workflow.preloaded('S', 'dd', [
        'if=/bin/sh',
        `of=${path}`,
        'bs=1000',
        `skip=${k * 30}`,
        `seek=${k * 30}`,
        'count=30',
        'conv=notrunc',
      ])
    await part(2).done
    await part(0).done
    assert.ok(await waits(workflow, consumer))
    assert.equal(await eventually(() => workflow.file('f')?.['written'] === 30_000), true)
    await part(1).done
    const expected = readFileSync('/bin/sh').subarray(0, 90_000)
    const { createHash } = await import('node:crypto')
    assert.equal((await consumer.done).stdout.slice(0, 32), createHash('md5').update(expected).digest('hex'))
  })
})

test('io_uring is refused so that programs fall back', { skip }, async () => {
  await withWorkflow([step(0, 'S')], async workflow => {
    const outcome = await workflow.preloaded('S', tools.fixture('try-io-uring'), []).done
    assert.equal(outcome.stdout, 'Function not implemented\n')
  })
})

test(
  'a wildcard for directories is about those inside the managed one, not about itself',
  { skip },
  async () => {
    const plan = [step(0, 'S'), step(1, 'Q'), rule('dir', '*', '0', 'on_termination:0', 'update')]
    await withWorkflow(plan, async workflow => {
      const { stdout } = workflow.board(['match', '.', 'a', 'a/b'])
      const lines = stdout
        .trim()
        .split('\n')
        .map(line => JSON.parse(line) as { path: string; rule: number | null; kind?: string })
      assert.deepEqual(
        lines.map(line => [line.path, line.rule, line.kind]),
        [
          ['.', null, undefined],
          ['a', 0, 'dir'],
          ['a/b', 0, 'file'],
        ],
      )
      const listed = await sh(workflow, 'Q', 'ls').done
      assert.equal(listed.code, 0, 'the managed directory itself can be listed at once')
    })
  },
)
