import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import type { RunEvent } from '../../src/core/events.ts'
import { writeParaver } from '../../src/report/export/paraver.ts'
import { randomRun } from './random-run.ts'
import { sampleRun, stream } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()

interface Prv {
  length: number
  cpus: number[]
  threads: number[]
  states: { cpu: number; task: number; thread: number; begin: number; end: number; state: number }[]
  events: { task: number; thread: number; at: number; values: Map<number, number> }[]
  messages: { from: [number, number, number]; to: [number, number, number]; bytes: number; tag: number }[]
}

/** Reads a trace as the format is described, and refuses whatever is not of it. */
function parse(text: string): Prv {
  const [head = '', ...lines] = text.trimEnd().split('\n')
  const found =
    /^#Paraver \(\d\d\/\d\d\/\d{4} at \d\d:\d\d\):(\d+)_ns:(\d+)\(([\d,]+)\):1:(\d+)\(([\d:,]+)\)$/.exec(head)
  assert(found, head)
  const [, length, nodes, cpus = '', tasks, threads = ''] = found
  const trace: Prv = {
    length: Number(length),
    cpus: cpus.split(',').map(Number),
    threads: threads.split(',').map((one, i) => {
      const [count, node] = one.split(':').map(Number)
      assert.equal(node, i + 1)
      return count as number
    }),
    states: [],
    events: [],
    messages: [],
  }
  assert.deepEqual([trace.cpus.length, trace.threads.length], [Number(nodes), Number(tasks)])
  const allCpus = trace.cpus.reduce((sum, one) => sum + one, 0)
  let last = 0
  for (const line of lines) {
    assert.match(line, /^[123](:\d+)+$/)
    const [kind, ...n] = line.split(':').map(Number) as [number, ...number[]]
    const at = (i: number): number => n[i] as number
    const check = (from: number): void => {
      assert(at(from) <= allCpus && at(from + 1) === 1, line)
      assert(at(from + 2) >= 1 && at(from + 2) <= trace.threads.length, line)
      assert(at(from + 3) >= 1 && at(from + 3) <= (trace.threads[at(from + 2) - 1] as number), line)
    }
    check(0)
    assert(at(4) >= last, `${line} is out of order`)
    last = at(4)
    const [cpu, , task, thread] = n as [number, number, number, number]
    if (kind === 1) {
      assert.equal(n.length, 7)
      trace.states.push({ cpu, task, thread, begin: at(4), end: at(5), state: at(6) })
      assert(at(5) <= trace.length)
    } else if (kind === 2) {
      assert.equal(n.length % 2, 1)
      const values = new Map<number, number>()
      for (let i = 5; i < n.length; i += 2) values.set(at(i), at(i + 1))
      trace.events.push({ task, thread, at: at(4), values })
    } else {
      assert.equal(n.length, 14)
      check(6)
      assert(at(4) <= at(10), `${line}: received before it was sent`)
      trace.messages.push({
        from: [at(2), at(3), at(4)],
        to: [at(8), at(9), at(10)],
        bytes: at(12),
        tag: at(13),
      })
    }
  }
  return trace
}

async function written(run: RunEvent[]): Promise<{ prv: Prv; pcf: string; row: string }> {
  await writeParaver(() => stream(run), join(folder, 'run.prv'))
  const read = (ending: string): string => readFileSync(join(folder, `run.${ending}`), 'utf8')
  return { prv: parse(read('prv')), pcf: read('pcf'), row: read('row') }
}

test('a run has a state for each stretch, events of kind and task, and a message for each input', async () => {
  const { prv, pcf, row } = await written(sampleRun)
  assert.deepEqual(prv.cpus, [2])
  // Two failed, one of them again; `add` waits for a task that it called; one task never ran.
  const states = prv.states.map(({ state }) => state)
  assert.deepEqual(states.sort(), [1, 1, 1, 1, 2, 2, 3])
  const began = prv.events.filter(({ values }) => values.get(8_000_002) !== 0)
  assert.deepEqual(
    began.map(({ values }) => values.get(8_000_002)),
    [1, 2, 2, 3, 4, 3, 5],
  )
  assert(prv.messages.length > 0)
  for (const name of ['project', 'add', 'jpeg']) assert.match(pcf, new RegExp(`^\\d+ +${name}$`, 'm'))
  assert.match(row, /^LEVEL CPU SIZE 2\n.*\n.*\n\nLEVEL NODE SIZE 1\n/)
})

test('any run gives a valid trace in which no two states of a thread overlap', async () => {
  await fc.assert(
    fc.asyncProperty(randomRun, async ({ events }) => {
      const { prv } = await written(events)
      const ends = new Map<string, number>()
      for (const { task, thread, begin, end } of prv.states) {
        const key = `${task}:${thread}`
        assert(begin >= (ends.get(key) ?? 0))
        ends.set(key, end)
      }
    }),
    { numRuns: 50 },
  )
})
