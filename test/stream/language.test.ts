import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { commitText } from '../../src/stream/language/language.ts'
import { checkText } from '../../src/stream/language/load.ts'
import { type Plan, ruleFinder } from '../../src/stream/board/plan.ts'
import { problemText } from '../../src/stream/language/problems.ts'
import { PAPER, step, TODAY, top } from './samples.ts'

const FILE = 'Config.json'

function good(text: string): Plan {
  const { plan, problems } = checkText(text, FILE)
  assert.ok(plan, problems.map(problemText).join('\n'))
  return plan
}

const rules = (plan: Plan): string[] =>
  plan.rules.map(rule => {
    const name = `${rule.pattern.text}${rule.directory ? '/' : ''}`
    return `${name} ${rule.producers.join('+')}>${rule.consumers.join('+')} ${commitText(rule.commit)} ${rule.fire}`
  })

describe('the language', () => {
  test("the paper's example in its older spellings", () => {
    const plan = good(PAPER)
    assert.deepEqual(rules(plan), [
      'dir/file_D.dat appB>appC on_close update',
      'file_A.dat appA>appC on_close:3 no_update',
      'file_B.dat appA>appC on_file file_A.dat update',
      'file_C.dat appB>appC on_termination update',
      'dir/ appB>appC on_n_files 100 no_update',
      'dir/* appB>appC on_close no_update',
    ])
    const find = ruleFinder(plan)
    assert.equal(find('dir/file_D.dat')?.fire, 'update')
    assert.equal(find('dir/other')?.fire, 'no_update')
    assert.deepEqual(find('file_A.dat')?.home, { policy: 'manual', step: 'appC', process: 0 })
    assert.deepEqual(
      plan.rules.map(rule => rule.permanent),
      ['yes', 'no', 'no', 'yes', 'no', 'yes'],
    )
  })

  test("today's spelling, with every key", () => {
    const plan = good(TODAY)
    assert.equal(plan.version, '1.1')
    assert.deepEqual(rules(plan), [
      'p1.dat writer>reader on_close:2 update',
      'p2.dat writer>reader on_close:2 update',
      'd1/ writer>reader on_n_files 3 no_update',
      'd2/ writer>reader on_file log.txt update',
      'd1/* writer>reader on_close no_update',
      'd2/* writer>reader on_file log.txt update',
      'log.txt writer>reader on_termination update',
    ])
    const find = ruleFinder(plan)
    assert.equal(find('d1/x')?.storage, 'memory')
    assert.equal(find('log.txt')?.storage, 'fs')
    assert.deepEqual(find('d2/x')?.home, { policy: 'hashing' })
    assert.deepEqual(find('p2.dat')?.home, { policy: 'manual', step: 'reader', process: 2 })
    assert.equal(find('d2/x')?.permanent, 'yes')
    assert.equal(find('raw.csv'), undefined)
  })

  test("the paper's benchmark, streams as lists of groups", () => {
    const plan = good(`{ "name": "benchmarks", "IO_Graph": [
      { "name": "S", "output_stream": [{"files": ["file*.dat"]}],
        "streaming": [{"name": "file*.dat", "committed": "on_close", "mode": "no_update"}] },
      { "name": "Q", "input_stream": ["file*.dat"] } ] }`)
    assert.deepEqual(rules(plan), ['file*.dat S>Q on_close no_update'])
  })

  test('a rule without mode fires when complete; one without committed is complete at the end', () => {
    const plan = good(`{ "name": "w", "IO_Graph": [ { "name": "a", "output_stream": ["f", "g"],
      "streaming": [{ "name": "f", "committed": "on_close" }, { "name": "g", "mode": "no_update" }] },
      { "name": "b", "input_stream": ["f", "g"] } ] }`)
    assert.deepEqual(rules(plan), ['f a>b on_close update', 'g a>b on_termination no_update'])
  })

  test('a rule always wins over the default of a stream, also when its pattern is shorter', () => {
    const plan = good(`{ "name": "w", "IO_Graph": [ { "name": "a", "output_stream": ["long_name_1.dat"],
      "streaming": [{ "name": "*", "committed": "on_close" }] }, { "name": "b", "input_stream": ["*"] } ] }`)
    assert.equal(commitText(ruleFinder(plan)('long_name_1.dat')!.commit), 'on_close')
    assert.deepEqual(rules(plan), ['* a>b on_close update'])
  })

  test('ten thousand names are no burden', () => {
    const files = Array.from({ length: 10_000 }, (_, n) => `dir/file_${n}.dat`)
    const streaming = files.map(name => ({ name, committed: 'on_close', mode: 'no_update' }))
    const graph = [
      { name: 'a', output_stream: files, streaming },
      { name: 'b', input_stream: files },
    ]
    assert.equal(good(JSON.stringify({ name: 'w', IO_Graph: graph })).rules.length, 10_000)
  })
})

const oddities: [name: string, text: string, message: RegExp][] = [
  [
    'a rule in the step that reads',
    '{"name":"w","IO_Graph":[{"name":"a","output_stream":["f"]},{"name":"b","input_stream":["f"],"streaming":[{"name":"f","committed":"on_close"}]}]}',
    /stands in step 'b', but 'a' writes it/,
  ],
  [
    'a result that is removed',
    '{"name":"w","IO_Graph":[{"name":"a","output_stream":["f"]}]}',
    /removed at the end/,
  ],
  [
    'a rule for what no step writes',
    step('{"name": "fil_A", "committed": "on_close"}', '"file_A", "f"'),
    /'fil_A', which no step writes: it has no effect/,
  ],
  ['permanent, but not written', top('"permanent": ["h.dat"]'), /no step writes it/],
  ['equally long patterns', step('{"name": "f*"}, {"name": "*f", "committed": "on_close"}'), /equally long/],
  ['the same rule twice', step('{"name": "f"}, {"name": "f"}'), /already in line 3/],
  [
    'more terminations than steps',
    step('{"name": "f", "committed": "on_termination:3"}'),
    /3 of its writers/,
  ],
  [
    'steps that wait for each other',
    '{"name":"w","IO_Graph":[{"name":"a","input_stream":["y"],"output_stream":["x"]},{"name":"b","input_stream":["x"],"output_stream":["y"]}]}',
    /a -> b -> a/,
  ],
  [
    'a step that reads what it writes',
    '{"name":"w","IO_Graph":[{"name":"a","input_stream":["x"],"output_stream":["x"]}]}',
    /wait for itself/,
  ],
  [
    'a step without streams',
    top('').replace(',\n }', '}').replace('"IO_Graph": [', '"IO_Graph": [{"name": "z"},'),
    /reads and writes nothing/,
  ],
  [
    'a directory under "name"',
    step('{"name": "d"}', '"f", "g", "d", "d/x"'),
    /write "dirname"|other names lie below/,
  ],
  ['an excluded output', top('"exclude": ["f"]'), /no step waits for it/],
  ['settings of CAPIO', top('"version": 1.1, "configuration": "x.toml"'), /does not read/],
  [
    'two writers and one close',
    '{"name":"w","IO_Graph":[{"name":"a","output_stream":["f"],"streaming":[{"name":"f","committed":"on_close"}]},{"name":"b","output_stream":["f"]},{"name":"c","input_stream":["f"]}]}',
    /first close completes/,
  ],
]

describe('odd but legal things are warnings', () => {
  for (const [name, text, message] of oddities) {
    test(name, () => {
      const { plan, problems } = checkText(text, FILE)
      assert.ok(plan, problems.map(problemText).join('\n'))
      assert.ok(
        problems.some(problem => message.test(problem.message)),
        problems.map(problemText).join('\n'),
      )
    })
  }

  test("a file may have the name of a group when it is written './name'", () => {
    const text = top('"aliases": [{"group_name": "group0", "files": ["f"]}], "permanent": ["./group1"]')
    assert.ok(checkText(text, FILE).plan)
  })

  test('the good examples have none', () => {
    assert.deepEqual(checkText(TODAY, FILE).problems, [])
    assert.deepEqual(checkText(PAPER, FILE).problems, [])
  })
})
