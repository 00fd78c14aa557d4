import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkText, planDot, planGraph, planLines, planTable } from '../../src/stream/index.ts'
import { toolsOrReason } from './support.ts'

const { tools, skip } = await toolsOrReason()

const word = fc.constantFrom(
  'f',
  'g.dat',
  'd',
  'd/x',
  'd/*',
  '*',
  'f{1,2}',
  'group0',
  'é',
  'a,b',
  '%',
  './f',
  'd/',
  '[a-c]?',
)
const names = fc.oneof(word, fc.array(word, { maxLength: 3 }))
const junk = fc.oneof(
  fc.constant(null),
  fc.integer({ min: -1, max: 5 }),
  fc.boolean(),
  names,
  fc.constant({}),
)
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 30, arbitrary: value }, { weight: 1, arbitrary: junk })
const committed = fc.constantFrom(
  'on_close',
  'on_close:2',
  'on_close:0',
  'on_termination',
  'on_termination:2',
  'on_file',
  'on_n_files',
  'f',
  'on_clos',
)
const rule = fc.record(
  {
    name: maybe(names),
    dirname: maybe(names),
    committed: maybe(committed),
    mode: maybe(fc.constantFrom('update', 'no_update', 'updte')),
    file_deps: maybe(names),
    n_files: maybe(fc.integer({ min: 0, max: 5 })),
    type: maybe(fc.constantFrom('d', 'f')),
  },
  { requiredKeys: [] },
)
const stream = fc.oneof(names, fc.record({ group_name: fc.constant('group0'), files: names }))
const step = fc.record(
  {
    name: maybe(fc.constantFrom('a', 'b', 'c')),
    input_stream: maybe(stream),
    output_stream: maybe(stream),
    streaming: maybe(fc.array(rule, { maxLength: 3 })),
  },
  { requiredKeys: ['name'] },
)
const config = fc.record(
  {
    name: maybe(fc.constant('w')),
    version: maybe(fc.constantFrom(1, 1.1)),
    aliases: maybe(
      fc.array(fc.record({ group_name: fc.constantFrom('group0', 'd'), files: names }), { maxLength: 2 }),
    ),
    IO_Graph: maybe(fc.array(step, { minLength: 1, maxLength: 3 })),
    permanent: maybe(names),
    exclude: maybe(names),
    storage: maybe(fc.record({ memory: names, fs: names }, { requiredKeys: [] })),
    home_node_policies: maybe(
      fc.record(
        {
          create: names,
          hashing: names,
          manual: fc.array(fc.record({ name: names, app_node: fc.constantFrom('a', 'b:1', 'z') })),
        },
        { requiredKeys: [] },
      ),
    ),
  },
  { requiredKeys: ['name', 'IO_Graph'] },
)

/** Few mistakes, so that many of them come through. */
const sane = fc
  .array(
    fc.record({
      names: fc.uniqueArray(word, { minLength: 1, maxLength: 3 }),
      committed: fc.constantFrom('on_close', 'on_close:2', 'on_termination', 'on_termination:1'),
      mode: fc.constantFrom('update', 'no_update'),
      directory: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map(rules => ({
    name: 'w',
    IO_Graph: rules.map(({ names: files, directory, ...rest }, index) => ({
      name: `s${index}`,
      output_stream: files,
      streaming: [{ [directory ? 'dirname' : 'name']: files[0], ...rest }],
    })),
    permanent: ['f'],
  }))

describe('any configuration', () => {
  test('is either planned or refused with a reason', () => {
    let planned = 0
    fc.assert(
      fc.property(fc.oneof(config, sane), fc.constantFrom(0, 2), (value, indent) => {
        const { plan, problems } = checkText(JSON.stringify(value, null, indent), 'Config.json')
        const errors = problems.filter(problem => problem.severity === 'error')
        assert.equal(plan === undefined, errors.length > 0)
        for (const problem of problems) {
          assert.ok(problem.line >= 1 && problem.column >= 1 && problem.message !== '' && problem.fix !== '')
        }
        if (plan === undefined) return
        planned++
        for (const line of (planTable(plan) + planGraph(plan)).split('\n'))
          assert.ok(line.length <= 100, line)
        assert.match(planDot(plan), /^digraph[^]*\}\n$/)
        assert.equal(planLines(plan, { dir: '/d' }).at(-1), 'end')
      }),
      { numRuns: 1000 },
    )
    assert.ok(planned > 100, `only ${planned} came through`)
  })

  test('that is planned is accepted by the board', { skip }, () => {
    fc.assert(
      fc.property(fc.oneof(sane, config), value => {
        const { plan } = checkText(JSON.stringify(value), 'Config.json')
        fc.pre(plan !== undefined)
        const input = `${planLines(plan, { dir: '/dev/shm/none' }).join('\n')}\n`
        const { status, stderr } = spawnSync(tools!.board, ['match', '--plan', 'f'], {
          input,
          encoding: 'utf8',
        })
        assert.equal(status, 0, `${stderr}\n${input}`)
      }),
      { numRuns: 60 },
    )
  })
})
