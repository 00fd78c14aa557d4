import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countSteps } from '../core/steps.ts'
import { Datum } from '../../src/core/data/datum.ts'
import { NO_SLOTS, keptSlots } from '../../src/model/capture/call.ts'
import type { Call, Slot } from '../../src/model/capture/call.ts'
import { addSlot, forgetSlots } from '../../src/model/capture/slots.ts'

const newCall = (): Call => ({ definition: null as never, given: [], args: [], slots: NO_SLOTS })

test('a datum has one slot, however many others there are and however often it is passed', () => {
  for (const count of [1, 10, 31, 32, 33, 500]) {
    const data = Array.from({ length: count }, () => new Datum())
    const call = newCall()
    for (let round = 0; round < 2; round++) {
      for (const [i, datum] of data.entries()) assert.equal(addSlot(call, datum, 'in', 'value'), i)
    }
    assert.equal(call.slots.length, count)
    assert.equal(addSlot(call, data.at(-1) as Datum, 'out', 'value'), count - 1)
    assert.deepEqual([...new Set(call.slots.map(slot => slot.mode))].at(-1), 'inout')
    const other = newCall()
    for (const [i, datum] of [...data].reverse().entries()) {
      assert.equal(addSlot(other, datum, 'in', 'value'), i)
    }
    forgetSlots()
    assert.equal(addSlot(call, data[0] as Datum, 'in', 'value'), 0)
  }
})

test('tasks with a few values keep the same of their slots, those with files or with many values their own', () => {
  const slots = (count: number, kind: 'value' | 'file'): Slot[] =>
    Array.from({ length: count }, () => ({ datum: new Datum(), kind, mode: 'in', initial: null }))
  assert.equal(keptSlots(NO_SLOTS), NO_SLOTS)
  assert.equal(keptSlots(slots(3, 'value')), keptSlots(slots(3, 'value')))
  assert.deepEqual(
    keptSlots(slots(3, 'value')).map(({ kind }) => kind),
    ['value', 'value', 'value'],
  )
  // One list for each number that there ever was would be as many as there are tasks.
  for (const own of [slots(2, 'file'), [...slots(1, 'value'), ...slots(1, 'file')], slots(1000, 'value')]) {
    assert.equal(keptSlots(own), own)
  }
})

test('each of many slots takes as many steps as each of few', () => {
  const steps = (count: number): number => {
    const data = Array.from({ length: count }, () => new Datum())
    const call = newCall()
    return countSteps(() => data.forEach(datum => addSlot(call, datum, 'in', 'value')), '/src/') / count
  }
  const [few, many] = [steps(1000), steps(20_000)]
  assert(many <= few, `${many.toFixed(1)} steps for each of many, ${few.toFixed(1)} for each of few`)
})
