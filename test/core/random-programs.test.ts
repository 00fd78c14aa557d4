import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Group } from '../../src/core/tasks/group.ts'
import { interpret } from './oracle.ts'
import type { Judge } from './oracle.ts'
import { Player } from './play.ts'
import { assertSequential, outputs } from './sequential.ts'
import { programs } from './program.ts'
import type { Program } from './program.ts'

/** MILLRACE_RUNS=10 makes the hunt ten times longer. */
const RUNS = 1000 * Number(process.env['MILLRACE_RUNS'] ?? 1)

const check = (
  name: string,
  runs: number,
  arbitrary: fc.Arbitrary<Program>,
  run: (p: Program) => void,
): void => {
  test(name, () => {
    fc.assert(fc.property(arbitrary, run), {
      numRuns: Math.ceil(runs),
      includeErrorInReport: true,
    })
  })
}

const sameAsSequential = (program: Program): void => assertSequential(program, new Player(program, 3).play())

/** Given how each task ended, the values are those of a sequential run in which they ended so. */
function consistent(program: Program): void {
  const player = new Player(program, 3).play()
  const judge: Judge = (uid, _call, inputsOk) => {
    const { task, call } = player.tasks.get(uid) ?? assert.fail(`${uid} was not called`)
    const early = call.early && task.accesses.some(({ write }) => write?.state === 'ready')
    if (task.state === 'done') return { end: 'ok', early }
    if (task.state === 'ignored') return { end: 'partial', early }
    if (task.state === 'cancelled' && inputsOk) {
      const troubled = player.closed || failedAbove(player, task.group)
      assert(troubled, `call ${uid} was cancelled for no reason: ${task.reason}`)
    }
    if (!inputsOk) assert.equal(task.state, 'cancelled', `call ${uid} without inputs`)
    return { end: 'bad', early }
  }
  const expected = interpret(program, judge)
  for (const {
    datum,
    expected: { ok, value },
    name,
  } of outputs(player, expected)) {
    assert.equal(player.valueOf(datum), ok ? value : null, name)
  }
  for (const { task } of player.tasks.values()) {
    if (task.state !== 'cancelled' || !task.cause) continue
    assert(task.cause.state === 'failed' || task.cause.state === 'cancelled', 'the cause itself went wrong')
  }
}

/** Whether something happened to the group, or to one around it, that cancels its members. */
function failedAbove(player: Player, group: Group): boolean {
  const failed = [...player.tasks.values()].some(
    ({ task }) =>
      task.state === 'failed' && task.onFailure !== 'cancelSuccessors' && within(group, task.group),
  )
  for (let at: Group | null = group; at; at = at.parent) if (player.troubled.has(at)) return true
  return failed
}

const within = (group: Group, outer: Group): boolean => {
  for (let at: Group | null = group; at; at = at.parent) if (at === outer) return true
  return false
}

check(
  'given small programs without cancelling, we should end as a sequential run does',
  RUNS * 1.5,
  programs({ exact: true, steps: 10 }),
  sameAsSequential,
)
check(
  'given longer programs without cancelling, we should end as a sequential run does',
  RUNS,
  programs({ exact: true, steps: 40 }),
  sameAsSequential,
)
check(
  'given failures of groups, cancels and falls back, we should end as a sequential run with these ends does',
  RUNS,
  programs({ exact: false, steps: 12 }),
  consistent,
)
check(
  'given longer programs with failures, cancels and the end of the run, we should stay consistent',
  RUNS,
  programs({ exact: false, steps: 45 }),
  consistent,
)
