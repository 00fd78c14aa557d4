import type { Case } from '../harness.ts'
import { runProgram } from '../run-program.ts'

/** Repetitions make the small sizes last long enough to be measured. */
const SIZES = [
  { tasks: 10_000, repetitions: 20 },
  { tasks: 100_000, repetitions: 4 },
  { tasks: 1_000_000, repetitions: 1 },
] as const
const JOURNALS = [true, false] as const

interface Costs {
  /** Bytes per task. */
  heap: number
  /** Microseconds per task, for each repetition. */
  submission: number[]
  completion: number[]
}

const suffix = (journal: boolean): string => (journal ? '' : ', no journal')
const nameOf = (tasks: number, journal: boolean): string =>
  `millrace at ${tasks.toLocaleString('en-US')}${suffix(journal)}`

/** One run gives three figures; the cases that come later use what the first has measured. */
const taken = new Map<string, Costs[]>()

function cost(tasks: number, repetitions: number, journal: boolean, pick: (costs: Costs) => number[]) {
  let round = 0
  return async (): Promise<number[]> => {
    const key = `${tasks} ${journal}`
    const known = taken.get(key) ?? []
    taken.set(key, known)
    const index = round++
    known[index] ??= await runProgram<Costs>('pending.mjs', [tasks, repetitions], {
      journal,
      execArgv: ['--expose-gc'],
    })
    return pick(known[index])
  }
}

const arms = (pick: (costs: Costs) => number[]) =>
  JOURNALS.flatMap(journal =>
    SIZES.map(({ tasks, repetitions }) => ({
      system: nameOf(tasks, journal),
      run: cost(tasks, repetitions, journal, pick),
    })),
  )

const total = ({ submission, completion }: Costs): number[] =>
  submission.map((time, i) => time + (completion[i] ?? NaN))

const shape = { better: 'lower', rounds: 3 } as const

export function pending(): Case[] {
  return [
    {
      ...shape,
      name: 'pending-memory',
      unit: 'bytes/task',
      take: 'median',
      about: 'heap and external memory per task that waits for its input, with its future',
      arms: arms(({ heap }) => [heap]),
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
