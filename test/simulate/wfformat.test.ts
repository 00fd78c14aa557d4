import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MillraceError } from '../../src/core/errors.ts'
import { simulate } from '../../src/simulate/simulate.ts'
import { readWfFormat } from '../../src/simulate/input/wfformat.ts'
import { wfPlatform, wfWorkload } from '../../src/simulate/input/wf-workload.ts'
import { sample } from './wf-sample.ts'
import type { Sample } from './wf-sample.ts'

const text = (change: (given: Sample) => void = () => undefined): string => {
  const given = sample()
  change(given)
  return JSON.stringify(given, null, 2)
}

test('a file of another version is told to be one, though nothing in it is where it should be', () => {
  const text = '{"schemaVersion": "1.4", "workflow": {"tasks": []}}'
  assert.throws(
    () => readWfFormat(text, 'w.json'),
    /^MillraceError: w\.json:1:19: schemaVersion is '1\.4', not 1\.5/m,
  )
})

test('an instance is read in an order in which each task comes after what it needs', () => {
  const { tasks, files, makespan } = readWfFormat(
    text(given => given.workflow.specification.tasks.reverse()),
    'w.json',
  )
  assert.deepEqual(tasks.map(({ id }) => id).at(-1), 'join_3')
  assert.equal(files.get('b'), 3e6)
  assert.equal(makespan, 30)
  const right = tasks.find(({ id }) => id === 'right_2')
  assert.deepEqual([right?.seconds, right?.share], [20, 0.5], 'half of its time it did not compute')
  assert.equal(right?.kind, 'right')
})

test('its tasks take the time that was recorded, whatever the storage', async () => {
  const instance = readWfFormat(text(), 'w.json')
  const disk = { name: 'disk', path: '/d', read: 1, write: 1, capacity: null }
  const platform = { nodes: [{ name: 'n', cpus: 2, memory: 1e9, tags: [], storage: [disk] }] }
  const outcome = await simulate(wfWorkload(instance), { platform })
  assert.equal(outcome.makespan, 20 + 5)
})

test('it runs on the machines that it was recorded on', () => {
  const machines = [
    { nodeName: 'a', cpu: { coreCount: 48, vendor: 'x' }, memoryInBytes: 1e9, release: '5' },
    { cpu: { coreCount: 2 } },
    { nodeName: 'unknown CPUs' },
  ]
  const given = text(sample => Object.assign(sample.workflow.execution, { machines }))
  assert.deepEqual(wfPlatform(readWfFormat(given, 'w.json'))?.nodes, [
    { name: 'a', cpus: 48, memory: 1e9, tags: [] },
    { name: 'machine-2', cpus: 2, memory: Number.MAX_SAFE_INTEGER, tags: [] },
  ])
  assert.equal(wfPlatform(readWfFormat(text(), 'w.json')), null)
})

test('fields that the simulator does not know are allowed everywhere', () => {
  const add = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(add)
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(([key, inner]) => [key, add(inner)])
    return { ...(Object.fromEntries(entries) as object), repo: 'r', remarks: [] }
  }
  const wide = JSON.stringify(add(JSON.parse(text())))
  assert.equal(readWfFormat(wide, 'w.json').tasks.length, 3)
})

test('traces of Nextflow are read: version 1.6, scripts as programs, files that are listed twice', () => {
  const given = text(sample => {
    sample.schemaVersion = '1.6'
    const { specification, execution } = sample.workflow
    Object.assign(specification, { metrics: { numberOfTasks: 3 } })
    for (const { outputFiles, inputFiles } of specification.tasks) {
      outputFiles.push(...outputFiles)
      inputFiles.push(...inputFiles)
    }
    const [left] = execution.tasks
    Object.assign(left as object, { command: { program: '# a script\n  sort in > a', arguments: [] } })
  })
  const { tasks } = readWfFormat(given, 'w.json')
  assert.deepEqual(
    tasks.map(({ kind, reads, writes }) => [kind, reads.join(), writes.join()]),
    [
      ['left', 'in', 'a'],
      ['right', 'in', 'b'],
      ['join', 'a,b', 'c'],
    ],
  )
})

test('places of a file that is read quickly are found when something is wrong', () => {
  const wrong = text(sample => sample.workflow.specification.tasks[2]?.parents.push('x'))
  assert.throws(() => readWfFormat(wrong, 'w.json', 1e6, 0), /^MillraceError: w\.json:\d+:\d+: parent 'x'/)
  assert.equal(readWfFormat(text(), 'w.json', 1e6, 0).tasks.length, 3)
})

test('with split times, its tasks take their CPU time and their bytes over the bandwidth', async () => {
  const instance = readWfFormat(text(), 'w.json')
  const disk = { name: 'disk', path: '/d', read: 1e6, write: 1e6, capacity: null }
  const platform = { nodes: [{ name: 'n', cpus: 2, memory: 1e9, tags: [], storage: [disk] }] }
  const outcome = await simulate(wfWorkload(instance, true), { platform })
  // Both read 1 MB at once (2 s) and compute 10 s; they write 2 and 3 MB at once (4 s, then 1 s); the last reads 5, computes 5, writes 4.
  assert(Math.abs(outcome.makespan - (2 + 10 + 5 + 5 + 5 + 4)) < 1e-6, String(outcome.makespan))
  assert.deepEqual([outcome.devices[0]?.read, outcome.devices[0]?.written], [7e6, 9e6])
})

test('a task that no node has room for is named with its place', async () => {
  const large = text(given => Object.assign(given.workflow.execution.tasks[0] as object, { coreCount: 64 }))
  const platform = { nodes: [{ name: 'n', cpus: 2, memory: 1e9, tags: [] }] }
  await assert.rejects(
    simulate(wfWorkload(readWfFormat(large, 'w.json')), { platform }),
    /^MillraceError: w\.json:\d+:\d+: 'left_1' does not fit: .*64 CPUs, but the largest node has 2/,
  )
})

const WRONG: [string, (given: Sample) => void, RegExp][] = [
  [
    'a file that is not listed',
    given => given.workflow.specification.files.pop(),
    /file 'c' of task 'join_3' is not in/,
  ],
  [
    'a negative size',
    given => (given.workflow.specification.files[0] = { id: 'in', sizeInBytes: -1 }),
    /^w\.json:5\d:\d+: .*sizeInBytes is -1: below 0/m,
  ],
  [
    'a size that cannot be meant',
    given => (given.workflow.specification.files[0] = { id: 'in', sizeInBytes: 1e300 }),
    /sizeInBytes is 1e\+300: above 9007199254740991/,
  ],
  [
    'another version',
    given => (given.schemaVersion = '2.0'),
    /^w\.json:3:\d+: schemaVersion is '2\.0', not 1\.5 or 1\.6/m,
  ],
  [
    'a circle',
    given => given.workflow.specification.tasks[0]?.parents.push('join_3'),
    /in a circle: left_1 needs join_3 needs left_1/,
  ],
  [
    'an unknown field',
    given => Object.assign(given.workflow.specification.tasks[0] as object, { inputfiles: [] }),
    /has no field 'inputfiles'; did you mean 'inputFiles'\?/,
  ],
  [
    'a parent that is no task',
    given => given.workflow.specification.tasks[2]?.parents.push('x'),
    /parent 'x' of task/,
  ],
  [
    'a task without a time',
    given => given.workflow.execution.tasks.pop(),
    /'join_3' is not in workflow.execution.tasks/,
  ],
  [
    'two tasks of one name',
    given => given.workflow.specification.tasks.push(given.workflow.specification.tasks[0] as never),
    /task 'left_1' is listed twice/,
  ],
  [
    'a task that was executed twice',
    given => given.workflow.execution.tasks.push({ id: 'left_1', runtimeInSeconds: 1 }),
    /task 'left_1' was executed twice/,
  ],
  [
    'a circle of very many tasks',
    given => {
      const { specification, execution } = given.workflow
      for (let i = 0; i < 20_000; i++) {
        const parents = [`t${(i + 1) % 20_000}`]
        specification.tasks.push({
          name: '',
          id: `t${i}`,
          parents,
          children: [],
          inputFiles: [],
          outputFiles: [],
        })
        execution.tasks.push({ id: `t${i}`, runtimeInSeconds: 1 })
      }
    },
    /in a circle: t0 needs t1 needs .* needs \(19980 more\) needs t0/,
  ],
  [
    'two writers of one file',
    given => given.workflow.specification.tasks[1]?.outputFiles.push('a'),
    /file 'a' is written by 'right_2' and by 'left_1'/,
  ],
  [
    'no specification',
    given => Reflect.deleteProperty(given.workflow, 'specification'),
    /workflow has no 'specification'/,
  ],
]
for (const [what, change, message] of WRONG) {
  test(`${what} is said with file, line, column and reason`, () => {
    assert.throws(
      () => readWfFormat(text(change), 'w.json'),
      (error: MillraceError) => {
        assert.equal(error.code, 'MR_WORKFLOW_FILE')
        assert.match(error.message, /^w\.json:\d+:\d+: /)
        assert.match(error.message, message)
        return true
      },
    )
  })
}

test('a file that is cut or changed anywhere is refused with its place, or is another good one', () => {
  const whole = text()
  const cut = fc.record({
    at: fc.nat(whole.length - 1),
    insert: fc.constantFrom('', '}', '"', '-1', ',', 'x'),
  })
  fc.assert(
    fc.property(cut, fc.boolean(), ({ at, insert }, isCut) => {
      const changed = whole.slice(0, at) + insert + (isCut ? '' : whole.slice(at + 1))
      try {
        readWfFormat(changed, 'w.json')
      } catch (error) {
        assert(error instanceof MillraceError, String(error))
        assert.match(error.message, /^w\.json:\d+:\d+: /)
      }
    }),
  )
})

test('a file that is too large for places is read as any other, and what is wrong is said with its path', () => {
  const bare = ({ tasks, ...rest }: ReturnType<typeof readWfFormat>) => ({
    ...rest,
    tasks: tasks.map(({ place: _place, ...task }) => task),
  })
  const large = readWfFormat(text(), 'w.json', 0)
  assert.deepEqual(bare(large), bare(readWfFormat(text(), 'w.json')))
  assert.equal(large.tasks[0]?.place, 'w.json')
  const wrong = text(given => (given.workflow.specification.files[1] = { id: 'a', sizeInBytes: -1 }))
  assert.throws(
    () => readWfFormat(wrong, 'w.json', 0),
    /^MillraceError: w\.json: workflow\.specification\.files\[1\]\.sizeInBytes is -1: below 0/,
  )
  assert.throws(
    () => readWfFormat(text().replace('"files"', 'files'), 'w.json', 0),
    /^MillraceError: w\.json:\d+:\d+: /,
  )
})

test('a task with very many children, and one that reads what all of them made, are read', () => {
  const wide = text(given => {
    const { specification, execution } = given.workflow
    const all = Array.from({ length: 20_000 }, (_, i) => `t${i}`)
    for (const id of all) {
      specification.tasks.push({
        name: '',
        id,
        parents: ['join_3'],
        children: [],
        inputFiles: ['c'],
        outputFiles: [id],
      })
      specification.files.push({ id, sizeInBytes: 1 })
      execution.tasks.push({ id, runtimeInSeconds: 1 })
    }
    specification.tasks.push({
      name: '',
      id: 'end',
      parents: [],
      children: [],
      inputFiles: all,
      outputFiles: [],
    })
    execution.tasks.push({ id: 'end', runtimeInSeconds: 1 })
  })
  const { tasks } = readWfFormat(wide, 'w.json')
  assert.equal(tasks.length, 20_004)
  assert.equal(tasks.at(-1)?.id, 'end')
  assert.equal(tasks.at(-1)?.parents.length, 20_000)
})
