import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ClassTree } from '../../../src/core/io/class-tree.ts'
import type { IoClass } from '../../../src/core/io/io-queue.ts'
import type { Task } from '../../../src/core/tasks/task.ts'

const number = fc.integer({ min: 0, max: 9 })
const steps = fc.array(
  fc.oneof(
    fc.record({ add: fc.record({ bandwidth: number, size: number, rank: number }) }),
    fc.record({ remove: fc.nat() }),
    fc.record({
      after: fc.option(fc.nat()),
      openings: fc.option(fc.array(fc.record({ bandwidth: number, room: number }), { maxLength: 3 })),
    }),
  ),
  { maxLength: 120 },
)

/** Ordered by rank, then by age, as tasks are by priority and turn. */
const isBefore = (a: Task, b: Task): boolean =>
  a.priority === b.priority ? a.turn < b.turn : a.priority < b.priority

test('the first class that fits should be the one that a search through all of them finds', () => {
  fc.assert(
    fc.property(steps, all => {
      const tree = new ClassTree(isBefore)
      const classes: IoClass[] = []
      const tasks: Task[] = []
      for (const step of all) {
        if ('add' in step) {
          const { bandwidth, size, rank } = step.add
          const first = { priority: rank, turn: tasks.length } as Task
          const one = { bandwidth, size, first, place: 0 } as unknown as IoClass
          tasks.push(first)
          classes.push(one)
          tree.add(one)
        } else if ('remove' in step) {
          const [one] = classes.splice(step.remove % Math.max(1, classes.length), 1)
          if (one) tree.delete(one)
        } else {
          const after = step.after === null ? null : (tasks[step.after % Math.max(1, tasks.length)] ?? null)
          const openings = step.openings?.map((one, id) => ({ id, device: null, ...one })) ?? null
          const fitting = classes.filter(
            ({ bandwidth, size, first }) =>
              (!after || isBefore(after, first as Task)) &&
              (openings?.some(one => bandwidth <= one.bandwidth && size <= one.room) ?? true),
          )
          const expected = fitting.sort((a, b) => (isBefore(a.first as Task, b.first as Task) ? -1 : 1))[0]
          assert.equal(tree.first(after, openings), expected ?? null)
        }
        assert.equal(tree.isEmpty, classes.length === 0)
        assert.equal(tree.isSingle, classes.length === 1)
      }
    }),
    { numRuns: 300 },
  )
})
