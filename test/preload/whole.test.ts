// Who takes a file for complete without reading it to its end gets it when it is; descriptors are followed wherever they
// go; a wait goes on under any signals.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { test } from 'node:test'
import { eventually, hasCommand, rule, skip, step, tools, withWorkflow } from './harness.ts'

const both = ['update', 'no_update'] as const
const plan = (mode: (typeof both)[number]): string[] => [
  step(0, 'S', '1'),
  step(1, 'Q', '1'),
  rule('file', 'f', '0', 'on_close:1', mode),
  rule('file', 'out/*', '0', 'on_close:1', mode),
]
const untilGo = 'while [ ! -e go ]; do sleep 0.02; done'

// O_PATH is 010000000 in octal
const takers: [needs: string, line: string, expected: string][] = [
  ['bash', 'exec 3<>f; wc -c < /dev/fd/3', '1010\n'],
  [
    'perl',
    'perl -e \'sysopen(F, "f", 2) or die $!; $n += $r while $r = sysread(F, $b, 100); print "$n\\n"\'',
    '1010\n',
  ],
  ['perl', 'perl -e \'sysopen(F, "f", 010000000) or die $!; print -s F, "\\n"\'', '1010\n'],
  ['mv', 'mv f g && MILLRACE_STREAM_OFF=1 wc -c < g', '1010\n'],
  ['ln', 'ln f g && MILLRACE_STREAM_OFF=1 wc -c < g', '1010\n'],
  ['python3', 'python3 -c \'import os; os.chmod("f", 0o640); print(os.stat("f").st_mode & 0o777)\'', '416\n'],
  [
    'python3',
    'python3 -c \'import os; os.statvfs("f"); os.listxattr("f"); os.utime("f", (1, 2)); print(1)\'',
    '1\n',
  ],
]
for (const mode of both)
  for (const [needs, line, expected] of takers)
    test(
      `a file that comes is waited for and whole: ${line} (${mode})`,
      { skip: skip || (hasCommand(needs) ? false : `${needs} is not installed`) },
      async () => {
        await withWorkflow(plan(mode), async workflow => {
          const at = { cwd: workflow.dir }
          const consumer = workflow.preloaded('Q', 'bash', ['-c', line], at)
          let over = false
          void consumer.done.then(() => (over = true))
          await eventually(() => over || workflow.ps().some(seen => seen.type === 'wait'))
          const write = `exec 3> f; head -c 10 /dev/zero >&3; ${untilGo}; head -c 1000 /dev/zero >&3; exec 3>&-`
          const producer = workflow.preloaded('S', 'bash', ['-c', write], at)
          await eventually(() => over || workflow.file('f')?.['state'] === 'growing')
          await eventually(() => over || workflow.ps().some(seen => seen['for'] === 'commit'), 500)
          writeFileSync(workflow.path('go'), '')
          const [seen, made] = await Promise.all([consumer.done, producer.done])
          assert.deepEqual([seen.code, seen.stdout, made.code], [0, expected, 0], seen.stderr + made.stderr)
        })
      },
    )

test(
  'a temporary file whose name a wildcard of another step matches is not waited for',
  { skip: skip || (hasCommand('perl') ? false : 'perl is not installed') },
  async () => {
    const others = [step(0, 'S', '1'), step(1, 'Q', '1'), rule('file', 't*', '0', 'on_close:1', 'no_update')]
    await withWorkflow(others, async workflow => {
      const at = { cwd: workflow.dir }
      const producer = workflow.preloaded('S', 'sh', ['-c', `${untilGo}; echo y > t1`], at)
      const rename = 'chmod(0600, "t.tmp") && rename("t.tmp", "g") or die'
      const line = `echo x > t.tmp; perl -e '${rename}'; : > go; cat g t1`
      const { code, stdout, stderr } = await workflow.preloaded('Q', 'sh', ['-c', line], at).done
      assert.deepEqual([code, stdout, (await producer.done).code], [0, 'x\ny\n', 0], stderr)
    })
  },
)

test(
  'a file that is being written can be watched until its writer closes it',
  { skip: skip || (hasCommand('python3') ? false : 'python3 is not installed') },
  async () => {
    await withWorkflow(plan('update'), async workflow => {
      const at = { cwd: workflow.dir }
      const write = `exec 3> f; echo 1 >&3; ${untilGo}; exec 3>&-`
      const producer = workflow.preloaded('S', 'sh', ['-c', write], at)
      await eventually(() => workflow.file('f')?.['state'] === 'growing')
      const lines = [
        'import ctypes, os',
        'libc = ctypes.CDLL(None)',
        'fd = libc.inotify_init()',
        'libc.inotify_add_watch(fd, b"f", 8)',
        'open("go", "w").close()',
        'print(len(os.read(fd, 100)) > 0)',
      ]
      const { stdout, stderr } = await workflow.preloaded('Q', 'python3', ['-c', lines.join('\n')], at).done
      assert.equal(stdout, 'True\n', stderr)
      await producer.done
    })
  },
)

// They name what they make from a descriptor of the directory that was opened with O_PATH.
for (const line of ['cp s out/', 'mv s out/', 'ln s out/', 'install s out/', 'cp -t out s'])
  test(`a file that comes into a directory by its program is complete then: ${line}`, { skip }, async () => {
    await withWorkflow(plan('update'), async workflow => {
      const at = { cwd: workflow.dir }
      const write = `mkdir out; echo x > s; ${line}; ${untilGo}`
      const producer = workflow.preloaded('S', 'bash', ['-c', write], at)
      const consumer = workflow.preloaded('Q', 'bash', ['-c', 'cat out/s'], at)
      const complete = await eventually(() => workflow.file('out/s')?.['state'] === 'committed', 30_000)
      writeFileSync(workflow.path('go'), '')
      await Promise.all([producer.done, consumer.done])
      assert.ok(complete, 'before the step has ended')
      assert.equal((await consumer.done).stdout, 'x\n')
    })
  })

test('a descriptor that goes through a socket is followed by its reader', { skip }, async () => {
  await withWorkflow(plan('no_update'), async workflow => {
    const at = { cwd: workflow.dir }
    const consumer = workflow.preloaded('Q', tools.fixture('pass-descriptor'), ['read', 'f'], at)
    const write = `exec 3> f; head -c 10 /dev/zero >&3; ${untilGo}; head -c 1000 /dev/zero >&3; exec 3>&-`
    const producer = workflow.preloaded('S', 'bash', ['-c', write], at)
    let over = false
    void consumer.done.then(() => (over = true))
    await eventually(() => over || workflow.ps().some(seen => seen['for'] === 'data'))
    writeFileSync(workflow.path('go'), '')
    assert.equal((await producer.done).code, 0)
    const { stdout, stderr } = await consumer.done
    assert.equal(stdout, '1010\n', stderr)
  })
})

for (const mode of both)
  test(
    `a file is complete when who got its descriptor through a socket has closed it (${mode})`,
    { skip },
    async () => {
      await withWorkflow(plan(mode), async workflow => {
        const at = { cwd: workflow.dir }
        const producer = workflow.preloaded('S', tools.fixture('pass-descriptor'), ['write', 'f', 'go'], at)
        const consumer = workflow.preloaded('Q', 'sh', ['-c', 'cat f | wc -c'], at)
        let over = false
        void consumer.done.then(() => (over = true))
        await eventually(() => over || workflow.ps().some(seen => seen.type === 'wait'))
        await eventually(() => workflow.file('f')?.['state'] === 'committed', 300) // it must not be
        writeFileSync(workflow.path('go'), '')
        const [made, seen] = await Promise.all([producer.done, consumer.done])
        assert.deepEqual([made.code, seen.stdout.trim()], [0, '1010'], made.stderr + seen.stderr)
      })
    },
  )

test(
  'a consumer that gets a signal every millisecond learns that its producer was killed',
  { skip: skip || (hasCommand('perl') ? false : 'perl is not installed') },
  async () => {
    await withWorkflow(plan('no_update'), async workflow => {
      const at = { cwd: workflow.dir }
      const script = `use POSIX; use Time::HiRes qw(setitimer ITIMER_REAL);
sigaction(SIGALRM, POSIX::SigAction->new(sub {}, POSIX::SigSet->new, SA_RESTART)); setitimer(ITIMER_REAL, 0.001, 0.001);
open(F, "<", "f") or die $!; $n += $r while $r = sysread(F, $b, 100); print "$n ", $! + 0`
      const consumer = workflow.preloaded('Q', 'perl', ['-e', script], at)
      await workflow.preloaded('S', tools.fixture('gather-steps'), ['f', '3', 'die'], at).done
      const { stdout, stderr } = await consumer.done
      assert.equal(stdout, `300 ${constants.errno.EIO}`, stderr)
    })
  },
)
