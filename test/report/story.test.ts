import assert from 'node:assert/strict'
import test from 'node:test'
import type { MillraceError } from '../../src/core/errors.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { story } from '../../src/report/story/story.ts'
import { sampleRun, stream } from './sample-run.ts'

const tell = (task: number | string, events: RunEvent[] = sampleRun): Promise<string[]> =>
  story(stream(events), task)

test('a task that was tried twice', async () => {
  assert.deepEqual(await tell(2), [
    '0.002s: project#2 b.fits was submitted by the main program',
    '0.002s: it had all its inputs',
    '0.005s: it started on lane 1 of n1 with 1 cpu, after waiting 3ms for a lane',
    '0.105s: it failed after 100ms, attempt 1: ExitError: mProject ended with exit code 2',
    '  it is tried again',
    '0.106s: it started again, attempt 2, on lane 1 of n1 with 1 cpu, after waiting 1ms for a lane',
    '2.106s: it finished after 2.0s',
    '  it made proj/b.fits',
  ])
})

test('a task that waited for others and for a task of its own', async () => {
  assert.deepEqual(await tell('add#3'), [
    '0.003s: add#3 was submitted by the main program',
    '  it waited for version 2 (2.1 MB) of project#1 a.fits, which came after 1.2s',
    '  it waited for version 4 of project#2 b.fits, which came after 2.1s',
    '2.106s: it had all its inputs, 2.1s after it was submitted',
    '2.110s: it started on lane 0 of n1 with 2 cpus, as wide, after waiting 4ms for a lane',
    '2.210s: it gave its lane back: waits for shrink#4',
    '2.512s: it went on, on lane 1 of n1, 302ms later',
    '3.012s: it finished after 902ms',
    '  it made 1 version',
  ])
})

test('an I/O task names its device, and no lane', async () => {
  const facts = { path: '/ssd', node: 0, read: null, write: null, capacity: null }
  const [first, ...rest] = sampleRun
  const events = [{ ...first, devices: [{ name: 'ssd', ...facts }] } as RunEvent, ...rest].map(event =>
    event.type === 'started' && event.task === 2 ? { ...event, cpus: 0, device: 0 } : event,
  )
  const lines = await tell(2, events)
  assert.equal(lines[2], '0.005s: it started without a CPU, on ssd, after waiting 3ms')
})

test('a nested task names its caller and its group', async () => {
  assert.equal((await tell('#4'))[0], '2.200s: shrink#4 was submitted by add#3, in group small')
})

test('a failure and what it led to', async () => {
  assert.deepEqual((await tell('jpeg')).slice(-3), [
    '3.516s: it failed after 500ms: ExitError: mJPEG ended with exit code 1',
    '  what it printed is in .millrace/runs/brisk-otter/logs/5.1.log',
    '  its group fails with it',
  ])
  assert.deepEqual(await tell('publish'), [
    '3.015s: publish#6 out.jpg was submitted by the main program',
    '  it waited for out.jpg of jpeg#5 out.jpg, which never came',
    '3.516s: it was cancelled, because of jpeg#5 out.jpg: jpeg#5 failed',
  ])
})

test('of several tasks of a name the most telling one is told', async () => {
  assert.equal((await tell('project'))[0], '2 tasks are called project; project#1 a.fits is the first.')
  const killed = sampleRun.slice(0, 13)
  const [choice, ...told] = await tell('project', killed)
  assert.equal(choice, '2 tasks are called project; project#2 b.fits is the first that has not ended.')
  assert.equal(told.at(-1), 'Here the journal ends.')
  const failed = killed.map(event => (event.type === 'failed' ? { ...event, next: 'fail' as const } : event))
  assert.match((await tell('project', failed))[0]!, /project#2 b.fits is the first that failed/)
})

const unknown: [string | number, RegExp][] = [
  ['projet', /no task `projet`\n {2}Did you mean project\?/],
  ['project#3', /no task `project#3`\n {2}Did you mean add#3\?/],
  [99, /no task `99`\n {2}Its tasks are numbered up to 6/],
  ['zzzzzz', /Its tasks are called project, add, shrink, jpeg, publish/],
]
for (const [task, message] of unknown) {
  test(`an unknown task: ${task}`, async () => {
    await assert.rejects(tell(task), (error: MillraceError) => {
      assert.equal(error.code, 'MR_JOURNAL')
      assert.match(error.message, message)
      return true
    })
  })
}
