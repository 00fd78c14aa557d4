import type { AttemptSteps } from '../core/events.ts'
import { FORMS } from '../core/tasks/form.ts'
import type { Task } from '../core/tasks/task.ts'
import type { Attempt } from './attempt.ts'
import type { GoodEnd } from './endings.ts'
import { attemptOf } from './job.ts'

/** Of which attempts the steps are measured: of all, or of a sample of the tasks that are so short that measuring them would show. */
export type StepTimes = 'off' | 'on' | 'all'

/** Where tasks of a kind take less than this (milliseconds), and this many have ended, one of every `SAMPLE` is measured. */
const SHORT = 0.1
const SAMPLED_AFTER = 1000
const SAMPLE = 64

/** Of tasks that run in threads. Tasks with files are never so short. */
export function measuredBy(stepTimes: StepTimes): (task: Task) => boolean {
  if (stepTimes === 'off') return () => false
  if (stepTimes === 'all') return () => true
  let count = 0
  return task => {
    const { ended, mean } = task.implementation
    if (ended < SAMPLED_AFTER || mean >= SHORT || attemptOf(task).fetched) return true
    return ++count % SAMPLE === 0
  }
}

export const stepTimesOf = (option: boolean | 'all' | undefined): StepTimes =>
  option === 'all' ? 'all' : option ? 'on' : 'off'

/** Whether something was measured of an attempt: by its thread, while its files were made ready, or of a command. */
export const hasSteps = (task: Task, { inThread }: GoodEnd): boolean =>
  Boolean(inThread) || attemptOf(task).fetched !== null || FORMS[task.kind.form].runsOn !== 'threads'

/** Where the time of an attempt went whose end was heard of at `arrivedAt`, and whose files were in place at `now`. */
export function stepsOf(
  { fetched }: Attempt,
  { startedAt, took, inThread }: GoodEnd,
  arrivedAt: number,
  now: number,
): AttemptSteps {
  const decode = inThread ? inThread.decode : 0
  const encode = inThread ? inThread.encode : 0
  const wait = inThread ? Math.min(inThread.wait, took) : 0
  const decodedFrom = startedAt - decode
  return {
    from: micros(fetched ? fetched.at : decodedFrom),
    fetch: fetched ? micros(fetched.took) : 0,
    queue: fetched ? micros(decodedFrom - fetched.at - fetched.took) : 0,
    decode: micros(decode),
    run: micros(took - wait),
    wait: micros(wait),
    encode: micros(encode),
    report: micros(arrivedAt - startedAt - took - encode),
    commit: micros(now - arrivedAt),
  }
}

/** Clocks of threads differ by some microseconds, so differences may be below 0. */
const micros = (milliseconds: number): number => Math.max(0, Math.round(milliseconds * 1000) / 1000)
