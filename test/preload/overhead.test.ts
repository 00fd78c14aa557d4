// What the library costs. Shared machines are noisy, so the figures are printed and only gross excess fails;
// the bounds of the issue are judged by bench/.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { test } from 'node:test'
import { rule, skip, start, step, tools, withWorkflow } from './harness.ts'

type Times = Map<string, number>

const merge = (into: Times, text: string): void => {
  for (const line of text.split('\n').filter(one => one !== '')) {
    const [name = '', ns = ''] = line.split(' ')
    into.set(name, Math.min(into.get(name) ?? Infinity, Number(ns)))
  }
}

test('calls outside and inside the managed directory, against plain', { skip, timeout: 120_000 }, async t => {
  const plan = [step(0, 'S'), step(1, 'Q'), rule('file', 'time-calls.dat', '0', 'on_close:1', 'update')]
  await withWorkflow(plan, async workflow => {
    const outside = mkdtempSync('/dev/shm/millrace-test-')
    await workflow.preloaded('S', 'sh', ['-c', 'echo > time-calls.dat'], { cwd: workflow.dir }).done
    const plain: Times = new Map()
    const far: Times = new Map()
    const inside: Times = new Map()
    for (let round = 0; round < 5; round++) {
      const calls = tools.fixture('time-calls')
      merge(plain, (await start(calls, [outside, '3000'], {}).done).stdout)
      merge(far, (await workflow.preloaded('Q', calls, [outside, '3000']).done).stdout)
      merge(inside, (await workflow.preloaded('Q', calls, [workflow.dir, '3000']).done).stdout)
    }
    rmSync(outside, { recursive: true })
    for (const [name, ns] of plain) {
      const [a, b] = [(far.get(name) ?? NaN) / ns, (inside.get(name) ?? NaN) / ns]
      t.diagnostic(`${name}: plain ${ns} ns, outside x${a.toFixed(3)}, committed inside x${b.toFixed(3)}`)
      assert.ok(a < 1.6 && b < 2, `${name}: ${a} outside, ${b} inside`)
    }
  })
})

test('the start of a process', { skip, timeout: 120_000 }, async t => {
  await withWorkflow([step(0, 'S')], async workflow => {
    const best = async (env: Record<string, string | undefined>): Promise<number> =>
      Number((await start(tools.fixture('time-start'), ['80'], { env }).done).stdout)
    let [plain, loaded, idle] = [Infinity, Infinity, Infinity]
    await best(workflow.env('S'))
    for (let round = 0; round < 4; round++) {
      plain = Math.min(plain, await best({}))
      loaded = Math.min(
        loaded,
        await best({ ...workflow.env('S'), TIME_START_PRELOAD: tools.lib, LD_PRELOAD: undefined }),
      )
      idle = Math.min(idle, await best({ TIME_START_PRELOAD: tools.lib }))
    }
    t.diagnostic(
      `plain ${plain} us, loaded but idle +${(idle - plain).toFixed(0)} us, at work +${(loaded - plain).toFixed(0)} us`,
    )
    assert.ok(loaded - plain < 1500)
  })
})
