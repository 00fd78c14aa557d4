// Files with two names, and names that change places; links outside that lead into the managed directory.
import assert from 'node:assert/strict'
import { existsSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually, rule, skip, step, withWorkflow, type Outcome, type Workflow } from './harness.ts'

const plan = [
  step(0, 'S', '1'),
  step(1, 'Q', '1'),
  rule('file', 'out*', '0', 'on_close:1', 'update'),
  rule('file', 'grows*', '0', 'on_close:2', 'no_update'),
]
const untilGo = 'while [ ! -e go ]; do sleep 0.02; done'

/** Runs both; the producer goes on behind `go` when the consumer waits for the file. */
const together = async (
  workflow: Workflow,
  produce: string,
  consume: string,
  file: string,
): Promise<[Outcome, Outcome]> => {
  const at = { cwd: workflow.dir }
  const producer = workflow.preloaded('S', 'bash', ['-c', produce], at)
  const consumer = workflow.preloaded('Q', 'bash', ['-c', consume], at)
  await eventually(() => workflow.ps().some(line => line.type === 'wait' && line['path'] === file))
  await workflow.preloaded(undefined, 'touch', ['go'], at).done
  return Promise.all([producer.done, consumer.done])
}

// `grows` is complete when it was closed twice
const twoNames: [string, string, string][] = [
  ['the first', 'exec 3> out; echo a >&3; ln out grows', 'exec 4>> grows; echo c >&4'],
  ['the second', 'echo -n > grows; ln grows out; exec 3>> out; echo a >&3', 'echo c >&3'],
  [
    'one that no rule knows',
    ': > plain; ln plain out; ln out grows; exec 3> plain; echo a >&3',
    'echo c >&3',
  ],
  ['one that goes', 'exec 3> out; echo a >&3; ln out grows; mv out plain', 'exec 4>> plain; echo c >&4'],
]
for (const [what, begin, end] of twoNames)
  test(`a file with two names is written through ${what}: each name has its rule`, { skip }, async () => {
    await withWorkflow(plan, async workflow => {
      const produce = `${begin}; ${untilGo}; echo b >&3; ${end}; exec 3>&- 4>&-`
      const [producer, consumer] = await together(workflow, produce, 'cat grows', 'grows')
      assert.deepEqual(
        [producer.code, producer.stderr, consumer.stdout],
        [0, '', 'a\nb\nc\n'],
        consumer.stderr,
      )
    })
  })

test('two names that a file had before the start are names of one file', { skip }, async () => {
  const dir = mkdtempSync('/dev/shm/millrace-test-')
  mkdirSync(join(dir, 'deep'))
  for (const name of ['out', 'plain']) writeFileSync(join(dir, name), 'old\n')
  linkSync(join(dir, 'out'), join(dir, 'grows'))
  linkSync(join(dir, 'plain'), join(dir, 'deep/other'))
  linkSync(join(dir, 'plain'), join(dir, 'grows2'))
  const run = async (workflow: Workflow): Promise<void> => {
    const produce = `exec 3> out 4> deep/other; echo a >&3; echo x >&4; exec 3>&- 4>&-; exec 3>> out 4>> plain; echo b >&3; echo y >&4; ${untilGo}; exec 3>&- 4>&-`
    const [producer, consumer] = await together(workflow, produce, 'cat grows grows2', 'grows')
    assert.deepEqual(
      [producer.code, producer.stderr, consumer.stdout],
      [0, '', 'a\nb\nx\ny\n'],
      consumer.stderr,
    )
  }
  await withWorkflow(plan, run, dir)
})

test('bytes that are cut through one name are cut for readers of the other', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const produce = `exec 3> out; echo one >&3; ln out grows; ${untilGo}; : > out`
    const consume = 'exec 5< grows; head -c 4 <&5; cat <&5 || echo failed'
    const at = { cwd: workflow.dir }
    const producer = workflow.preloaded('S', 'bash', ['-c', produce], at)
    const consumer = workflow.preloaded('Q', 'bash', ['-c', consume], at)
    // cat has the descriptor, and waits behind what head has read
    await eventually(() => workflow.ps().some(line => line['for'] === 'data' && line['at'] === 4))
    writeFileSync(workflow.path('go'), '')
    const { stdout, stderr } = await consumer.done
    await producer.done
    assert.equal(stdout, 'one\nfailed\n', stderr)
  })
})

test('two files that change places are what their names now say', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const script = `import ctypes, os, time
libc = ctypes.CDLL(None)
def swap(a, b): assert libc.renameat2(-100, a.encode(), -100, b.encode(), 2) == 0
f = open('grows', 'w'); f.write('long'); f.flush()
open('plain', 'w').write('short')
swap('grows', 'plain')
f.write('er'); f.close()
open('grows', 'a').close()
open('part', 'w').write('whole')
g = open('out1', 'w'); g.write('half'); g.flush()
swap('part', 'out1')
open('ready', 'w').close()
while not os.path.exists('go'): time.sleep(0.02)`
    const at = { cwd: workflow.dir }
    const producer = workflow.preloaded('S', 'python3', ['-c', script], at)
    await eventually(() => existsSync(workflow.path('ready')))
    const { stdout, stderr } = await workflow.preloaded('Q', 'cat', ['grows', 'out1', 'plain'], at).done
    await workflow.preloaded(undefined, 'touch', ['go'], at).done
    assert.deepEqual([stdout, (await producer.done).stderr], ['shortwholelonger', ''], stderr)
  })
})

const ways: [string, (outside: string) => string][] = [
  ['a link to the file', outside => `${outside}/file`],
  ['a link to the directory', outside => `${outside}/dir/out`],
  ['a link to a link', outside => `${outside}/again/dir/out`],
]
for (const [what, path] of ways)
  test(
    `a path outside that leads into the managed directory by ${what} is waited for`,
    { skip },
    async () => {
      const outside = mkdtempSync('/tmp/millrace-links-')
      try {
        await withWorkflow(plan, async workflow => {
          symlinkSync(`${workflow.dir}/out`, `${outside}/file`)
          symlinkSync(workflow.dir, `${outside}/dir`)
          symlinkSync('.', `${outside}/again`)
          const produce = `${untilGo}; echo all > ${path(outside)}; sleep 0.1`
          const consume = `cat < ${path(outside)}; stat -L -c %s ${path(outside)}`
          const [, consumer] = await together(workflow, produce, consume, 'out')
          assert.equal(consumer.stdout, 'all\n4\n', consumer.stderr)
          assert.equal(workflow.file('out')?.['state'], 'committed')
        })
      } finally {
        rmSync(outside, { recursive: true })
      }
    },
  )

test('a link that a step makes outside is followed by the others', { skip }, async () => {
  const outside = mkdtempSync('/tmp/millrace-links-')
  try {
    await withWorkflow(plan, async workflow => {
      const produce = `cd ${outside}; ln -s ${workflow.dir} in; cd - > /dev/null; ${untilGo}; echo all > out`
      const script = `import os, time
while not os.path.islink('${outside[0]}' + '${outside.slice(1)}/in'): time.sleep(0.02)
print(open(os.path.join('${outside[0]}' + '${outside.slice(1)}', 'in', 'out')).read(), end='')`
      const at = { cwd: workflow.dir }
      const producer = workflow.preloaded('S', 'bash', ['-c', produce], at)
      const consumer = workflow.preloaded('Q', 'python3', ['-'], { ...at, stdin: script })
      await eventually(() => workflow.ps().some(line => line.type === 'wait'))
      await workflow.preloaded(undefined, 'touch', ['go'], at).done
      assert.equal((await consumer.done).stdout, 'all\n')
      assert.equal((await producer.done).code, 0)
    })
  } finally {
    rmSync(outside, { recursive: true })
  }
})
