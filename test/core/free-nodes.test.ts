import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { FreeNodes } from '../../src/core/schedule/free-nodes.ts'
import { Node } from '../../src/core/schedule/machine.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'

test('given nodes that change at random, the first with room is the one that a look at all of them finds', () => {
  const change = fc.record({ node: fc.nat(40), lanes: fc.nat(8), memory: fc.nat(4) })
  const question = fc.record({ cpus: fc.integer({ min: 1, max: 8 }), memory: fc.nat(4), from: fc.nat(45) })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 41 }),
      fc.array(fc.tuple(change, question), { maxLength: 60 }),
      (count, steps) => {
        const nodes = Array.from(
          { length: count },
          (_, i) => new Node(i, { name: `n${i}`, cpus: 8, memory: 4, tags: [] }),
        )
        const free = new FreeNodes(nodes)
        for (const [{ node: which, lanes, memory: left }, { cpus, memory, from }] of steps) {
          const node = nodes[which % count] as Node
          node.freeLanes = lanes
          node.freeMemory = left
          free.update(node)
          const expected = nodes.find(
            one => one.index >= from && one.freeLanes >= cpus && one.freeMemory >= memory,
          )
          assert.equal(free.next(demandOf(cpus, memory, []), from), expected ?? null)
        }
      },
    ),
  )
})
