import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { commitText } from '../../src/stream/language.ts'
import { checkText } from '../../src/stream/load.ts'
import { type Plan, ruleFinder } from '../../src/stream/plan.ts'
import { problemText } from '../../src/stream/problems.ts'

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

/** The workflow of the paper, with the brackets that JSON needs. */
export const PAPER = `{ "name": "WF",
  "IO_Graph": [
    { "name": "appA",
      "output_stream": { "group_name": "group0", "files": ["file_A.dat", "file_B.dat"] },
      "streaming": [
        { "name": "file_A.dat", "committed": "on_close:3", "mode": "no_update" },
        { "name": "file_B.dat", "committed": "file_A.dat", "mode": "update" } ] },
    { "name": "appB",
      "output_stream": ["file_C.dat", "dir"],
      "streaming": [
        { "name": "file_C.dat", "committed": "on_termination", "mode": "update" },
        { "name": "dir", "type": "d", "nfiles": 100, "committed": "on_close", "mode": "no_update" },
        { "name": "dir/file_D.dat", "committed": "on_close", "mode": "update" } ] },
    { "name": "appC", "input_stream": ["group0", "dir", "file_C.dat"] }
  ],
  "permanent": ["dir/*", "file_C.dat"],
  "home_node": { "files": ["group0", "file_C.dat"], "node": "appC" } }`

const TODAY = `{ "version": 1.1, "name": "today",
  "aliases": [ { "group_name": "parts", "files": ["p{1,2}.dat"] } ],
  "IO_Graph": [
    { "name": "writer", "output_stream": ["parts", "log.txt", "d1", "d2"],
      "streaming": [
        { "name": ["parts"], "committed": "on_close:2" },
        { "dirname": ["d1"], "committed": "on_n_files", "n_files": 3, "mode": "no_update" },
        { "dirname": ["d2"], "committed": "on_file", "file_deps": ["log.txt"] } ] },
    { "name": "reader", "input_stream": ["parts", "d1", "d2", "log.txt", "raw.csv"] }
  ],
  "permanent": ["d2"], "exclude": ["*.tmp"],
  "storage": { "memory": ["d1"], "fs": ["log.txt"] },
  "home_node_policies": { "create": ["d1"], "hashing": ["d2"],
    "manual": [ { "name": ["parts"], "app_node": "reader:2" } ] } }`

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

/** A configuration with one thing in it that is wrong; `at` is where the text `here` begins. */
const step = (extra: string, output = '"f", "g", "d"'): string =>
  `{ "name": "w", "IO_Graph": [\n {"name": "a", "output_stream": [${output}], "streaming": [\n${extra}\n]},\n {"name": "b", "input_stream": ["f","g","d"]}] }`
const top = (extra: string): string =>
  `{ "name": "w", "IO_Graph": [{"name": "a", "output_stream": ["f", "g"]}, {"name": "b", "input_stream": ["f", "g"]}],\n${extra} }`

const S = 'IO_Graph[0].streaming[0]'
const mistakes: [name: string, text: string, here: string, field: string, message: RegExp, fix: RegExp][] = [
  [
    'unknown key',
    step('{"name": "f", "commited": "on_close"}'),
    '"commited"',
    `${S}.commited`,
    /unknown key/,
    /'committed'/,
  ],
  [
    'unknown key at the top',
    top('"permanents": []'),
    '"permanents"',
    'permanents',
    /unknown key/,
    /'permanent'/,
  ],
  [
    'a key with another meaning',
    '{"name":"w","steps":[],"IO_Graph":[{"name":"a"}]}',
    '"steps"',
    'steps',
    /unknown/,
    /'IO_Graph'/,
  ],
  ['a key twice', '{"name":"w","name":"x","IO_Graph":[{"name":"a"}]}', '"name":"x"', 'name', /twice/, /one/],
  ['no name', '{"IO_Graph":[{"name":"a"}]}', '{"IO', 'name', /missing/, /"name":/],
  ['no graph', '{"name":"w"}', '{"name', 'IO_Graph', /missing/, /IO_Graph/],
  ['no step', '{"name":"w","IO_Graph":[]}', '[]', 'IO_Graph', /no step/, /name/],
  ['a step without name', '{"name":"w","IO_Graph":[{}]}', '{}', 'IO_Graph[0].name', /missing/, /"name"/],
  ['a wrong type', top('"permanent": 3'), '3', 'permanent', /list of names.*a number/, /\["name"/],
  ['a wrong type inside', top('"exclude": ["x", 7]'), '7', 'exclude[1]', /a name.*a number/, /"name"/],
  [
    'the graph as an object',
    '{"name":"w","IO_Graph":{"name":"a"}}',
    '{"name":"a"',
    'IO_Graph',
    /list of steps/,
    /\[/,
  ],
  [
    'on_close:0',
    step('{"name": "f", "committed": "on_close:0"}'),
    '"on_close:0"',
    `${S}.committed`,
    /before anybody wrote/,
    /on_close:N/,
  ],
  [
    'a bad count',
    step('{"name": "f", "committed": "on_termination:x"}'),
    '"on_term',
    `${S}.committed`,
    /no usable count/,
    /N/,
  ],
  [
    'a mistyped rule',
    step('{"name": "f", "committed": "on-close:2"}'),
    '"on-close:2"',
    `${S}.committed`,
    /no commit rule/,
    /'on_close:2'/,
  ],
  [
    'an invented rule',
    step('{"name": "f", "committed": "on_reboot"}'),
    '"on_reboot"',
    `${S}.committed`,
    /no commit rule/,
    /on_termination/,
  ],
  [
    'a mistyped mode',
    step('{"name": "f", "mode": "no-update"}'),
    '"no-update"',
    `${S}.mode`,
    /no mode/,
    /'no_update'/,
  ],
  [
    'on_n_files on a file',
    step('{"name": "f", "committed": "on_n_files", "n_files": 3}'),
    '"n_files"',
    `${S}.n_files`,
    /for directories/,
    /dirname/,
  ],
  [
    'on_n_files without n_files',
    step('{"dirname": "d", "committed": "on_n_files"}'),
    '"on_n_files"',
    `${S}.committed`,
    /how many/,
    /n_files/,
  ],
  [
    'n_files 0',
    step('{"dirname": "d", "committed": "on_n_files", "n_files": 0}'),
    '0}',
    `${S}.n_files`,
    /at least 1/,
    /1/,
  ],
  [
    'on_file without file_deps',
    step('{"name": "f", "committed": "on_file"}'),
    '"on_file"',
    `${S}.committed`,
    /which files/,
    /file_deps/,
  ],
  [
    'file_deps without on_file',
    step('{"name": "f", "committed": "on_close", "file_deps": ["g"]}'),
    '"file_deps"',
    `${S}.file_deps`,
    /only with/,
    /on_file/,
  ],
  [
    'a wildcard in file_deps',
    step('{"name": "f", "committed": "on_file", "file_deps": ["g*"]}'),
    '"g*"',
    `${S}.file_deps[0]`,
    /wildcard/,
    /one by one/,
  ],
  [
    'name and dirname',
    step('{"name": "f", "dirname": "d"}'),
    '"dirname"',
    `${S}.dirname`,
    /not both/,
    /two rules/,
  ],
  ['neither', step('{"committed": "on_close"}'), '{"committed', `${S}.name`, /about nothing/, /name/],
  [
    'a rule for what nobody writes',
    step('{"name": "fil_A", "committed": "on_close"}', '"file_A", "f"'),
    '"fil_A"',
    `${S}.name`,
    /no step writes/,
    /'file_A'/,
  ],
  [
    'a dependency that nobody writes',
    step('{"name": "f", "committed": "on_file", "file_deps": ["other"]}'),
    '"other"',
    `${S}.file_deps[0]`,
    /never be complete/,
    /output_stream/,
  ],
  [
    'an older on_file that nobody writes',
    step('{"name": "f", "committed": "other.dat"}'),
    '"other.dat"',
    `${S}.committed`,
    /never be complete/,
    /output_stream/,
  ],
  [
    'a rule that contradicts',
    step('{"name": "f", "committed": "on_close"}, {"name": ["f"]}'),
    '"f"]',
    'IO_Graph[0].streaming[1].name[0]',
    /on_termination\/update here and on_close\/update in line 3/,
    /keep one/,
  ],
  [
    'file and directory',
    step('{"name": "d"}, {"dirname": "d"}'),
    '"d"}\n',
    'IO_Graph[0].streaming[1].dirname',
    /directory here and a file/,
    /keep one/,
  ],
  [
    'a circle of two',
    step('{"name": "f", "committed": "g"}, {"name": "g", "committed": "f"}'),
    '"f", "committed": "g"',
    `${S}.name`,
    /f -> g -> f/,
    /another rule/,
  ],
  [
    'a file that waits for itself',
    step('{"name": "*", "committed": "f"}'),
    '"*"',
    `${S}.name`,
    /waits for itself/,
    /rule of its own/,
  ],
  [
    'a directory that waits for a file in it',
    step('{"dirname": "d", "committed": "on_file", "file_deps": ["d/x"]}'),
    '"d", "comm',
    `${S}.dirname`,
    /d\/\*' waits for itself/,
    /rule of its own/,
  ],
  [
    'two steps of one name',
    '{"name":"w","IO_Graph":[{"name":"a","output_stream":["f"]},{"name":"a","input_stream":["f"]}]}',
    '"a","input',
    'IO_Graph[1].name',
    /already in line 1/,
    /own/,
  ],
  [
    'an unknown group',
    top('"aliases": [{"group_name": "group0", "files": ["f"]}], "permanent": ["gruop0"]'),
    '"gruop0"',
    'permanent[0]',
    /no group/,
    /'group0'/,
  ],
  [
    'groups in a circle',
    top(
      '"aliases": [{"group_name": "x", "files": ["y"]}, {"group_name": "y", "files": ["x"]}], "permanent": ["x"]',
    ),
    '"x"]}],',
    'aliases[1].files[0]',
    /x -> y -> x/,
    /name the files/,
  ],
  [
    'a group twice',
    top('"aliases": [{"group_name": "x", "files": ["f"]}, {"group_name": "x", "files": ["g"]}]'),
    '"x", "files": ["g"',
    'aliases[1].group_name',
    /defined twice/,
    /another name/,
  ],
  [
    'a group without files',
    top('"aliases": [{"group_name": "x"}]'),
    '{"group_name"',
    'aliases[0].files',
    /missing/,
    /files/,
  ],
  [
    'an unknown home step',
    top('"home_node_policies": {"manual": [{"name": ["f"], "app_node": "aa:1"}]}'),
    '"aa:1"',
    'home_node_policies.manual[0].app_node',
    /no step 'aa'/,
    /'a'/,
  ],
  [
    'a bad home',
    top('"home_node": {"files": ["f"], "node": "a:x"}'),
    '"a:x"',
    'home_node.node',
    /names no process/,
    /step:N/,
  ],
  [
    'two homes',
    top('"home_node_policies": {"create": ["f"], "hashing": ["f"]}'),
    '"f"]} }',
    'home_node_policies.hashing[0]',
    /two home nodes/,
    /keep one/,
  ],
  [
    'both spellings of homes',
    top('"home_node_policies": {}, "home_node": {"files": ["f"], "node": "a"}'),
    '"home_node":',
    'home_node',
    /both say/,
    /keep/,
  ],
  [
    'two storages',
    top('"storage": {"memory": ["f"], "fs": ["f"]}'),
    '"f"]} }',
    'storage.fs[0]',
    /both in memory/,
    /keep one/,
  ],
  [
    'an unknown storage',
    top('"storage": {"memroy": ["f"]}'),
    '"memroy"',
    'storage.memroy',
    /unknown/,
    /'memory'/,
  ],
  [
    'excluded and ruled',
    step('{"name": "f"}').replace('"w",', '"w", "exclude": ["f"],'),
    '"f"}',
    `${S}.name`,
    /exclude/,
    /remove/,
  ],
  [
    'excluded by pattern and ruled',
    step('{"name": "f"}').replace('"w",', '"w", "exclude": ["?"],'),
    '"f"}',
    `${S}.name`,
    /exclude/,
    /remove/,
  ],
  ['a name that leads out', top('"permanent": ["../f"]'), '"../f"', 'permanent[0]', /leads out/, /relative/],
  ['an empty name', top('"permanent": [""]'), '""', 'permanent[0]', /empty/, /remove/],
  ['an unknown version', top('"version": 2'), '2 }', 'version', /not known/, /1\.1/],
  [
    'a blank in a step',
    '{"name":"w","IO_Graph":[{"name":"a b"}]}',
    '"a b"',
    'IO_Graph[0].name',
    /blank/,
    /letters/,
  ],
  ['a wrong type letter', step('{"name": "d", "type": "x"}'), '"x"', `${S}.type`, /'d'/, /"d"/],
]

describe('mistakes are named with place, field and fix', () => {
  for (const [name, text, here, field, message, fix] of mistakes) {
    test(name, () => {
      const { plan, problems } = checkText(text, FILE)
      assert.equal(plan, undefined)
      const errors = problems.filter(problem => problem.severity === 'error')
      assert.equal(errors.length, 1, errors.map(problemText).join('\n'))
      const [error] = errors
      const offset = text.indexOf(here)
      assert.ok(offset >= 0, `the test has no '${here}'`)
      const before = text.slice(0, offset).split('\n')
      assert.equal(
        `${error!.line}:${error!.column}`,
        `${before.length}:${before.at(-1)!.length + 1}`,
        problemText(error!),
      )
      assert.equal(error!.field, field)
      assert.match(error!.message, message)
      assert.match(error!.fix, fix)
      assert.match(problemText(error!), /^Config\.json:\d+:\d+: error: /)
    })
  }

  test('all of them at once, in the order of the file', () => {
    const text = `{"nam": "w",\n "IO_Graph": [{"name": "a", "output_stream": "f",\n "streaming": [{"name": "x"}, {"name": "f", "mode": "m"}]}],\n "storage": 1}`
    const { problems } = checkText(text, FILE)
    const lines = problems.filter(p => p.severity === 'error').map(p => p.line)
    assert.deepEqual(lines, [1, 1, 3, 3, 4])
  })

  test("the paper's figure as it was printed gets a hint about brackets", () => {
    const printed = PAPER.replace('"IO_Graph": [', '"IO_Graph": {')
    assert.match(checkText(printed, FILE).problems[0]!.fix, /'\[' at line 2, column 15/)
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
  ['an excluded output', top('"exclude": ["f"]'), /nobody will wait/],
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
