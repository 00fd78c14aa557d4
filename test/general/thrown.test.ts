import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageOf } from '../../src/general/thrown.ts'

test('whatever is thrown has a text that says what it is', () => {
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  for (const [thrown, text] of [
    [{ code: 7 }, '{"code":7}'],
    [circle, '[object Object]'],
    [new Error('it broke'), 'it broke'],
    ['', "'' (an empty text)"],
    [null, 'null'],
    [[1, 2], '1,2'],
    [Object.create(null), 'a value of type object that cannot be shown'],
  ] as const)
    assert.equal(messageOf(thrown), text)
})
