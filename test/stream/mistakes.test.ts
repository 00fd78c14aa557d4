import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { checkText } from '../../src/stream/language/load.ts'
import { problemText } from '../../src/stream/language/problems.ts'
import { PAPER, step, top } from './samples.ts'

const FILE = 'Config.json'
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
    /before it was written/,
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
    'a dependency that no step writes',
    step('{"name": "f", "committed": "on_file", "file_deps": ["other"]}'),
    '"other"',
    `${S}.file_deps[0]`,
    /never be complete/,
    /output_stream/,
  ],
  [
    'an older on_file that no step writes',
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
    const text = `{"nam": "w",\n "IO_Graph": [{"name": "a", "output_stream": "f",\n "streaming": [{"name": "f", "n": 1}, {"name": "f", "mode": "m"}]}],\n "storage": 1}`
    const { problems } = checkText(text, FILE)
    const lines = problems.filter(p => p.severity === 'error').map(p => p.line)
    assert.deepEqual(lines, [1, 1, 3, 3, 4])
  })

  test("the paper's figure as it was printed gets a hint about brackets", () => {
    const printed = PAPER.replace('"IO_Graph": [', '"IO_Graph": {')
    assert.match(checkText(printed, FILE).problems[0]!.fix, /'\[' at line 2, column 15/)
  })
})
