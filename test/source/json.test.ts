import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type JsonNode, parseJson } from '../../src/source/json.ts'

function plain(node: JsonNode): unknown {
  switch (node.kind) {
    case 'object':
      return Object.fromEntries(node.members.map(member => [member.key, plain(member.value)]))
    case 'array':
      return node.items.map(plain)
    case 'null':
      return null
    case 'string':
    case 'number':
    case 'boolean':
      return node.value
  }
}

describe('JSON with places', () => {
  test('reads whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 1, 4, '\t'), (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        const { root, problems } = parseJson(text)
        assert.deepEqual(problems, [])
        const back = root === undefined ? undefined : plain(root)
        // Through JSON once more: -0 and the key __proto__ are not what this is about.
        assert.equal(JSON.stringify(back), JSON.stringify(JSON.parse(text)))
      }),
      { examples: [[{ a: [1, 'x', null, true] }, 1]] },
    )
  })

  test('never throws and never reports nothing, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from('{}[]",:\'/*#\\ \nabtrue01-.')) }),
        text => {
          const { root, problems } = parseJson(text)
          let valid = true
          try {
            JSON.parse(text)
          } catch {
            valid = false
          }
          if (valid) assert.deepEqual(problems, [])
          else assert.ok(problems.length > 0)
          assert.ok(root !== undefined || problems.length > 0)
        },
      ),
    )
  })

  test('knows the place of keys and values', () => {
    const { root } = parseJson('{\n  "a": [1,\n    {"b": "x"}]\n}')
    assert.equal(root?.kind, 'object')
    if (root?.kind !== 'object') return
    assert.deepEqual(root.members[0]!.keyAt, { line: 2, column: 3 })
    const list = root.members[0]!.value
    assert.deepEqual(list.at, { line: 2, column: 8 })
    if (list.kind !== 'array') return
    assert.deepEqual(list.items[1]!.at, { line: 3, column: 5 })
    if (list.items[1]!.kind !== 'object') return
    assert.deepEqual(list.items[1]!.members[0]!.value.at, { line: 3, column: 11 })
  })

  const slips: [name: string, text: string, place: string, message: RegExp, fix: RegExp][] = [
    ['a trailing comma in a list', '["a",\n "b",\n]', '2:5', /comma before the closing '\]'/, /remove/],
    ['a trailing comma in an object', '{"a": 1,}', '1:8', /comma before the closing '}'/, /remove/],
    ['a line comment', '{ // why\n "a": 1 }', '1:3', /comment/, /remove/],
    ['a block comment', '[1 /* one */]', '1:4', /comment/, /remove/],
    ['a hash comment', '# top\n{}', '1:1', /comment/, /remove/],
    ['single quotes', "{'a': 1}", '1:2', /single quotes/, /double quotes/],
    ['a key without quotes', '{name: "x"}', '1:2', /key name has no quotes/, /"name"/],
    ['a value without quotes', '{"a": on_close:3}', '1:7', /on_close:3 has no quotes/, /"on_close:3"/],
    ['a missing comma', '[1\n 2]', '2:2', /comma is missing/, /','/],
    ['a missing comma between members', '{"a": 1\n "b": 2}', '2:2', /comma is missing/, /','/],
    ['a missing closing bracket', '{"a": [1, 2', '1:12', /'\[' of line 1, column 7 is not closed/, /'\]'/],
    ['the wrong closing bracket', '{"a": [1, 2}', '1:12', /'}' closes the '\[' of line 1, column 7/, /'\]'/],
    [
      'a list of objects in braces',
      '{"g": {\n {"a": 1} }}',
      '2:2',
      /where a key is expected/,
      /'\[' at line 1, column 7/,
    ],
    ['a key inside a list', '["a": 1]', '1:5', /key with ':' inside a list/, /\{ \}/],
    ['a missing colon', '{"a" "b"}', '1:6', /no ':' after the key "a"/, /"a":/],
    ['an equals sign', '{"a" = 1}', '1:6', /'='/, /':'/],
    ['a string over two lines', '["a\nb"]', '1:2', /not closed on its line/, /"/],
    ['an unknown escape', '["a\\*"]', '1:4', /not an escape/, /\\\\\*/],
    ['something after the end', '{}\n}', '2:1', /after the end/, /remove/],
    ['nothing at all', ' \n', '2:1', /empty/, /write/],
    ['a number with a plus', '[+1]', '1:2', /not a number/, /write 1/],
    ['the words of Python', '[True]', '1:2', /True has no quotes/, /write true/],
    ['typographic quotes', '{“a”: 1}', '1:2', /typographic/, /plain/],
  ]
  for (const [name, text, place, message, fix] of slips) {
    test(`names the slip: ${name}`, () => {
      const { problems } = parseJson(text)
      assert.equal(problems.length, 1, JSON.stringify(problems))
      const { at } = problems[0]!
      assert.equal(`${at.line}:${at.column}`, place)
      assert.match(problems[0]!.message, message)
      assert.match(problems[0]!.fix, fix)
    })
  }

  test('finds several slips in one look', () => {
    const { root, problems } = parseJson("{ // c\n 'a': [1, 2,],\n}")
    assert.equal(problems.length, 4)
    assert.notEqual(root, undefined)
  })

  test('does not overflow on thousands of brackets', () => {
    const { problems } = parseJson('['.repeat(100_000))
    assert.match(problems[0]!.message, /200 brackets/)
  })
})
