import assert from 'node:assert/strict'
import { exactly, interpret } from './oracle.ts'
import type { Expectation, Summary } from './oracle.ts'
import type { Player } from './play.ts'
import type { Program } from './program.ts'

/** Every task ends as a sequential run says, and every datum has the value that it says. */
export function assertSequential(program: Program, player: Player): void {
  const expected = interpret(program, exactly)
  for (const [uid, { task }] of player.tasks) {
    const outcome = expected.tasks.get(uid)
    // What a task calls in attempts that fail has no place in a sequential run.
    if (!outcome && uid.includes('/')) continue
    const { verdict, causes, inputsOk } = outcome ?? assert.fail(`${uid} is unknown`)
    const end = { ok: 'done', partial: 'ignored', bad: inputsOk ? 'failed' : 'cancelled' }[verdict.end]
    // What was ignored then is kept with what it left.
    const isKept = player.machine.answered.has(task) && end !== 'failed' && end !== 'cancelled'
    assert.equal(task.state, isKept ? 'done' : end, `call ${uid}: ${task.story()}`)
    if (end === 'cancelled') assertCause(player, task.cause, causes)
  }
  for (const {
    datum,
    expected: { ok, value, causes },
    name,
  } of outputs(player, expected)) {
    assert.equal(player.valueOf(datum), ok ? value : null, name)
    if (!ok) assertCause(player, datum.current.cause, causes)
  }
}

/** Everything that a run leaves, with what it should be. */
export function outputs(player: Player, { data, results }: Expectation) {
  assert.equal(player.results.length, results.length)
  return [
    ...player.data.map((datum, i) => ({ datum, expected: data[i] as Summary, name: `datum ${i}` })),
    ...player.results.map((datum, i) => ({ datum, expected: results[i] as Summary, name: `result ${i}` })),
  ]
}

/** The task that is named as the cause is one that can be. */
function assertCause(player: Player, cause: unknown, causes: Set<string>): void {
  const named = [...causes].map(uid => player.tasks.get(uid)?.task)
  assert(named.includes(cause as never), `the cause is none of ${[...causes].join(', ')}`)
}
