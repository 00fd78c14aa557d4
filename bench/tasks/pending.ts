import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

/**
 * Each process runs a million tasks, so that each size pays its share of garbage collection; the best of
 * many small repetitions would be one without any.
 */
const SIZES = [10_000, 100_000, 1_000_000] as const
const IN_ALL = 1_000_000
const JOURNALS = [true, false] as const

interface Costs {
  /** Bytes per task. */
  heap: number
  /** Microseconds per task, over all repetitions. */
  submission: number
  completion: number
}

const suffix = (journal: boolean): string => (journal ? '' : ', no journal')
const nameOf = (tasks: number, journal: boolean): string =>
  `millrace at ${tasks.toLocaleString('en-US')}${suffix(journal)}`

/** One run gives three figures; the cases that come later use what the first has measured. */
const taken = new Map<string, Costs[]>()

function cost(tasks: number, journal: boolean, pick: (costs: Costs) => number) {
  let round = 0
  return async (): Promise<number> => {
    const key = `${tasks} ${journal}`
    const known = taken.get(key) ?? []
    taken.set(key, known)
    const index = round++
    known[index] ??= await runProgram<Costs>('pending.mjs', [tasks, IN_ALL / tasks], {
      journal,
      execArgv: ['--expose-gc'],
    })
    return pick(known[index])
  }
}

const arms = (pick: (costs: Costs) => number) =>
  JOURNALS.flatMap(journal =>
    SIZES.map(tasks => ({ system: nameOf(tasks, journal), run: cost(tasks, journal, pick) })),
  )

const total = ({ submission, completion }: Costs): number => submission + completion

const shape = { better: 'lower', rounds: 3 } as const

export function pending(): Case[] {
  return [
    {
      ...shape,
      name: 'pending-memory',
      unit: 'bytes/task',
      take: 'median',
      about: 'heap and external memory per task that waits for its input, with its future',
      arms: arms(({ heap }) => heap),
      goals: JOURNALS.map(journal => ({ of: nameOf(1_000_000, journal), upTo: 1024, unit: 'bytes/task' })),
    },
    {
      ...shape,
      name: 'pending-cost',
      unit: 'us/task',
      take: 'best',
      about: 'submission and completion of tasks that first all wait for one input',
      arms: arms(total),
      goals: JOURNALS.map(journal => ({
        of: nameOf(1_000_000, journal),
        against: nameOf(10_000, journal),
        atMost: 1.3,
      })),
    },
    {
      ...shape,
      name: 'pending-submission',
      unit: 'us/task',
      take: 'best',
      about: 'the same, submission only',
      arms: arms(({ submission }) => submission),
    },
    {
      ...shape,
      name: 'pending-completion',
      unit: 'us/task',
      take: 'best',
      about: 'the same, from the moment that the input comes',
      arms: arms(({ completion }) => completion),
    },
  ]
}
