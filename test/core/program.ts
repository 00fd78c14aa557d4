import fc from 'fast-check'
import type { AccessMode } from '../../src/core/data/datum.ts'
import type { NodeDescription } from '../../src/core/schedule/machine.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import type { OnFailure } from '../../src/core/tasks/task.ts'

/** A random program: what a main program would do, as data. Indices are taken modulo what there is. */
const POLICY_NAMES = ['fifo', 'lifo', 'fifo-data', 'hrf', 'lifo+hrf', 'rank', 'random'] as const

export interface Program {
  seed: number
  nodes: NodeDescription[]
  policy: (typeof POLICY_NAMES)[number]
  data: { inPlace: boolean; path: string | null }[]
  kinds: { form: 'function' | 'command'; demands: (Demand | null)[]; short: boolean }[]
  /** Parent of each group: -1 is the root group. */
  groups: number[]
  steps: Step[]
}

export interface Use {
  datum: number
  mode: AccessMode
  /** It is the result of an earlier call: `datum` says how many calls back, 0 is the last one. */
  result: boolean
}

export interface Call {
  kind: number
  uses: Use[]
  priority: number
  demand: Demand
  /** -1 is the root group. */
  group: number
  onFailure: OnFailure
  retries: number
  /** So many attempts fail before one does not. */
  failures: number
  timed: boolean
  /** Its first output is committed before it ends. */
  early: boolean
  /** Calls that it makes itself, over data of its own, and waits for. */
  inside: Call[]
}

export type Step =
  | { do: 'call'; call: Call }
  | { do: 'read'; datum: number }
  | { do: 'write'; datum: number }
  | { do: 'fallBack'; datum: number; result: boolean }
  | { do: 'remove'; datum: number }
  | { do: 'pause'; events: number }
  | { do: 'wait'; group: number }
  | { do: 'cancel'; group: number }
  | { do: 'cancelTask'; call: number }
  | { do: 'acknowledge'; group: number }
  | { do: 'close' }

/** The uses of a call that make sense: those of results only if there is such a call. */
export const usesOf = (call: Call, results: number): Use[] =>
  call.uses.filter(({ datum, result }) => !result || datum < results)

/** Data that each caller of tasks has for itself. */
export const INSIDE_DATA = [
  { inPlace: false, path: null },
  { inPlace: true, path: null },
]

export interface Wishes {
  /** Only what a sequential run determines: no `fail`, no cancelling. */
  exact: boolean
  steps: number
}

const modes: AccessMode[] = ['in', 'in', 'out', 'inout', 'inout', 'concurrent', 'commutative']
const DATA = 4
const GROUPS = 3

const flag = (share: number): fc.Arbitrary<boolean> => fc.nat(99).map(n => n >= 100 - share * 100)

const node: fc.Arbitrary<Omit<NodeDescription, 'name'>> = fc.record({
  cpus: fc.integer({ min: 1, max: 4 }),
  memory: fc.constantFrom(0, 100, 1000),
  tags: fc.subarray(['gpu', 'avx']),
})

interface DemandSeed {
  node: number
  cpus: number
  memory: number
  tagged: boolean
  plain: boolean
  share: number
}

const demandSeed: fc.Arbitrary<DemandSeed> = fc.record({
  node: fc.nat(5),
  cpus: fc.nat(2),
  memory: fc.constantFrom(0, 0, 0.3, 1),
  tagged: flag(0.2),
  plain: flag(0.6),
  share: fc.constantFrom(0, 0, 0.5, 0.3),
})

/** A demand that at least one of the nodes can meet. */
function demandFor(nodes: readonly Omit<NodeDescription, 'name'>[], seed: DemandSeed): Demand {
  if (seed.plain) return demandOf(1, 0, [])
  const on = nodes[seed.node % nodes.length] as NodeDescription
  return demandOf(
    seed.share > 0 ? seed.share : 1 + (seed.cpus % Math.min(3, on.cpus)),
    Math.floor(on.memory * seed.memory),
    seed.tagged ? on.tags.slice(0, 1) : [],
  )
}

const uses = (most: number): fc.Arbitrary<Use[]> =>
  fc.array(fc.record({ datum: fc.nat(DATA - 1), mode: fc.constantFrom(...modes), result: flag(0.25) }), {
    maxLength: most,
  })

const seedOfCall = (wishes: Wishes) =>
  fc.record({
    kind: fc.nat(5),
    uses: fc.tuple(uses(3), flag(0.15)).map(([list, twice]) => (twice ? list : distinct(list))),
    priority: fc.constantFrom(0, 0, 0, 1, 2),
    demand: demandSeed,
    group: fc.integer({ min: -1, max: GROUPS - 1 }),
    onFailure: wishes.exact
      ? fc.constantFrom<OnFailure[]>('ignore', 'cancelSuccessors')
      : fc.constantFrom<OnFailure[]>('ignore', 'cancelSuccessors', 'retry', 'fail', 'fail'),
    retries: fc.constantFrom(0, 0, 0, 1, 2),
    failures: fc.constantFrom(0, 0, 0, 0, 0, 0, 1, 2, 3),
    timed: flag(0.2),
    early: flag(0.1),
  })

const distinct = (list: Use[]): Use[] =>
  list.filter((use, i) => list.findIndex(other => isSame(use, other)) === i)

export const isSame = (a: Use, b: Use): boolean => a.datum === b.datum && a.result === b.result

/** A team member that also reads its memory in place sees there what others have added so far. */
const repeats = (list: Use[], index: number): boolean => {
  const same = list.filter(use => isSame(use, list[index] as Use))
  return same.length > 1 && same.some(({ mode }) => mode === 'concurrent' || mode === 'commutative')
}

const place = (most: number): fc.Arbitrary<number> => fc.nat(most - 1)
const anyGroup = fc.integer({ min: -1, max: GROUPS - 1 })

const stepsFor = (wishes: Wishes) => {
  const call = fc.tuple(
    seedOfCall(wishes),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(seedOfCall(wishes), { minLength: 1, maxLength: 4 }) },
    ),
  )
  const other: fc.Arbitrary<Exclude<Step, { do: 'call' }>>[] = [
    fc.record({ do: fc.constant('read'), datum: place(DATA) }),
    fc.record({ do: fc.constant('write'), datum: place(DATA) }),
    fc.record({ do: fc.constant('fallBack'), datum: place(DATA), result: flag(0.3) }),
    fc.record({ do: fc.constant('remove'), datum: place(DATA) }),
    fc.record({ do: fc.constant('pause'), events: fc.integer({ min: 1, max: 12 }) }),
    fc.record({ do: fc.constant('pause'), events: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ do: fc.constant('wait'), group: anyGroup }),
  ]
  if (!wishes.exact) {
    other.push(
      fc.record({ do: fc.constant('cancel'), group: place(GROUPS) }),
      fc.record({ do: fc.constant('cancelTask'), call: fc.nat(30) }),
      fc.record({ do: fc.constant('acknowledge'), group: anyGroup }),
      fc.record({ do: fc.constant('acknowledge'), group: anyGroup }),
    )
    if (wishes.steps > 30) other.push(fc.constant({ do: 'close' }))
  }
  return fc.array(
    fc.oneof(
      { weight: 7, arbitrary: call.map(pair => ({ pair })) },
      { weight: 3, arbitrary: fc.oneof(...other) },
    ),
    { minLength: 2, maxLength: wishes.steps, size: 'max' },
  )
}

export const programs = (wishes: Wishes): fc.Arbitrary<Program> =>
  fc
    .record({
      seed: fc.nat(0x7fffffff),
      nodes: fc.array(node, { minLength: 1, maxLength: 3 }),
      policy: fc.constantFrom(...POLICY_NAMES),
      data: fc.array(fc.record({ inPlace: flag(0.35), file: flag(0.2) }), {
        minLength: DATA,
        maxLength: DATA,
      }),
      kinds: fc.array(
        fc.record({
          form: fc.constantFrom('function' as const, 'function' as const, 'command' as const),
          more: fc.array(demandSeed, { maxLength: 2 }),
          several: flag(0.3),
          short: flag(0.6),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      groups: fc.array(fc.integer({ min: -1, max: 1 }), { minLength: GROUPS, maxLength: GROUPS }),
      steps: stepsFor(wishes),
    })
    .map(raw => {
      const finish = ({
        demand,
        ...call
      }: (typeof raw.steps)[number] extends infer S
        ? S extends { pair: [infer C, unknown] }
          ? C
          : never
        : never): Call => ({
        ...call,
        kind: call.kind % raw.kinds.length,
        uses: call.uses.filter(
          (use, i) => i === 0 || use.result || !raw.data[use.datum]?.inPlace || !repeats(call.uses, i),
        ),
        demand: demandFor(raw.nodes, demand),
        inside: [],
      })
      return {
        seed: raw.seed,
        nodes: raw.nodes.map((one, i) => ({ ...one, name: `n${i}` })),
        policy: raw.policy,
        data: raw.data.map(({ inPlace, file }, i) => ({
          inPlace: inPlace && !file,
          path: file ? `/data/${i}` : null,
        })),
        kinds: raw.kinds.map(({ form, more, several, short }) => ({
          form,
          demands: [null, ...(several ? more.map(seed => demandFor(raw.nodes, seed)) : [])],
          short,
        })),
        groups: raw.groups.map((parent, i) => Math.min(parent, i - 1)),
        steps: raw.steps.map((step): Step => {
          if (!('pair' in step)) return step
          const [call, inside] = step.pair
          return {
            do: 'call',
            call: {
              ...finish(call),
              inside: inside.map(one => {
                const child = finish(one)
                const own = distinct(
                  child.uses.map(use => ({ ...use, datum: use.datum % INSIDE_DATA.length })),
                )
                return { ...child, uses: own, failures: wishes.exact ? 0 : child.failures % 2 }
              }),
            },
          }
        }),
      }
    })
