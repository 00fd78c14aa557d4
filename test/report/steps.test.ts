import assert from 'node:assert/strict'
import test from 'node:test'
import type { AttemptSteps, RunEvent } from '../../src/core/events.ts'
import { stepLines } from '../../src/cli/inspect/show.ts'
import { traceText } from '../../src/report/export/trace.ts'
import { Statistics } from '../../src/report/statistics/statistics.ts'
import { story } from '../../src/report/story/story.ts'
import { createPaint } from '../../src/report/terminal/paint.ts'
import { runStarted } from './sample-run.ts'

const steps = (run: number): AttemptSteps => ({
  from: 2,
  fetch: 1,
  queue: 0.5,
  decode: 0.25,
  run,
  wait: 4,
  encode: 0.125,
  report: 0,
  commit: 3,
})

const life = (task: number, measured?: AttemptSteps): RunEvent[] => [
  { type: 'submitted', at: 0, task, kind: 1, parent: null, group: null, priority: 0, reads: [], writes: [] },
  { type: 'ready', at: 0, task },
  { type: 'started', at: 2, task, attempt: 1, node: 0, lane: 0, cpus: 1 },
  { type: 'finished', at: 20, task, attempt: 1, ...(measured && { steps: measured }) },
]

const events: RunEvent[] = [
  runStarted,
  { type: 'kind-defined', at: 0, kind: 1, name: 'align', form: 'function', module: '' },
  ...life(1, steps(10)),
  ...life(2, steps(20)),
  ...life(3),
]

async function* stream(): AsyncGenerator<RunEvent> {
  yield* events
}

test('the mean of each step is that of the attempts that were measured', () => {
  const statistics = new Statistics()
  for (const event of events) statistics.observe(event)
  const { stepped, stepsMs } = statistics.kinds.get(1)!
  assert.equal(stepped, 2)
  assert.deepEqual([stepsMs.run, stepsMs.wait, stepsMs.commit, stepsMs.report], [30, 8, 6, 0])
  const lines = stepLines(statistics, createPaint(false, true))
  assert.match(lines[0]!, /attempts +fetch +queue +decode +run +wait +encode +report +commit/)
  assert.match(lines[1]!, /^align +2 +1\.000ms +0\.500ms +0\.250ms +15ms +4\.000ms +0\.125ms +- +3\.000ms/)
})

test('a story says where the time of the task went', async () => {
  const lines = await story(stream(), 1)
  assert(
    lines.includes(
      '  its time: 1ms fetching its files, 0.5ms waiting for its turn, 0.25ms decoding its arguments, 10ms running, ' +
        '4ms waiting for results of others, 0.125ms encoding its results, 3ms bringing its files to their places',
    ),
    lines.join('\n'),
  )
  assert(!(await story(stream(), 3)).some(line => line.includes('its time')))
})

test('a trace has the steps one after the other, with what it waited for in its run', async () => {
  let text = ''
  for await (const part of traceText(stream())) text += part
  const { traceEvents } = JSON.parse(text) as {
    traceEvents: { ph: string; cat?: string; name: string; id: number; ts: number; args?: { task: number } }[]
  }
  const all = traceEvents.filter(({ cat }) => cat === 'step')
  const drawn = all
    .filter(({ ph, args }) => ph === 'b' && args?.task === 1)
    .map(({ name, id, ts }) => [name, ts, all.find(end => end.ph === 'e' && end.id === id)?.ts])
  assert.deepEqual(drawn, [
    ['fetch', 2000, 3000],
    ['queue', 3000, 3500],
    ['decode', 3500, 3750],
    ['run', 3750, 17750],
    ['encode', 17750, 17875],
    ['commit', 17875, 20875],
  ])
})
