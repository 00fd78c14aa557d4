// A command inside a step fails, and the step with it, a moment later: what the command had written and closed is not
// taken for complete in between.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rule, skip, step, withWorkflow } from './harness.ts'

const plan = [
  step(0, 'S', '1'),
  step(1, 'M', '1'),
  step(2, 'Q', '1'),
  rule('file', 'a', '0', 'on_close:1', 'no_update'),
  rule('file', 'b', '1', 'on_close:1', 'no_update'),
]

const failing: [string, string][] = [
  ['leaves its file open', 'bash -c "echo half; exit 3" > b; exit 3'],
  ['closes its file, after a failed read', 'cat a > b; exit $?'],
  ['renames its file, after a failed read', 'cat a > t; s=$?; mv t b; exit $s'],
  ['is followed by one that ends well, after a failed read', 'cat a | sort > b; exit 3'],
]

for (const [how, script] of failing)
  test(`a command that fails in a step and ${how}: its reader gets an error`, { skip }, async () => {
    await withWorkflow(plan, async workflow => {
      const at = { cwd: workflow.dir }
      const reader = workflow.preloaded('Q', 'cat', ['b'], at)
      const middle = workflow.preloaded('M', 'bash', ['-c', script], at)
      const source = workflow.preloaded(
        'S',
        'bash',
        ['-c', 'echo some > a.part; exec > a; echo some; exit 9'],
        at,
      )
      const [q, m] = await Promise.all([reader.done, middle.done, source.done])
      assert.notEqual(m.code, 0)
      assert.match(q.stderr, /Input\/output error/, `it read ${JSON.stringify(q.stdout)} as if that were all`)
      assert.equal(workflow.file('b')?.['state'], 'failed')
    })
  })

test('a command that fails in a step that ends well: its file is complete then', { skip }, async () => {
  await withWorkflow(plan, async workflow => {
    const at = { cwd: workflow.dir }
    const reader = workflow.preloaded('Q', 'cat', ['b'], at)
    const script = 'bash -c "echo found; exit 1" > b; echo more > c; exit 0'
    assert.equal((await workflow.preloaded('M', 'bash', ['-c', script], at).done).code, 0)
    const q = await reader.done
    assert.deepEqual([q.code, q.stdout], [0, 'found\n'], q.stderr)
  })
})
