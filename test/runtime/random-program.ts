import fc from 'fast-check'
import type { Form, Limit, Shape, Spec } from '../fixtures/random-tasks.ts'

/** A random program as data. Numbers that choose something are taken modulo what there is. */

export interface CallStep {
  do: 'call'
  shape: Shape
  form: Form
  retries: number
  limit: Limit
  failures: number
  failForm: Spec['form']
  spin: number
  ins: { which: number; wrap: number }[]
  targets: number[]
}

export type Step =
  | CallStep
  | { do: 'wait'; which: number }
  | { do: 'waitLater'; which: number }
  | { do: 'mutate'; which: number; to: number }
  | { do: 'mutateFresh'; which: number; to: number }
  | { do: 'group'; calls: CallStep[] }
  | { do: 'failGroup'; call: CallStep; after: CallStep[] }
  | { do: 'failAlone'; call: CallStep; after: CallStep[] }
  | { do: 'cancelGroup'; calls: CallStep[] }
  | { do: 'barrier' }
  | { do: 'turns'; count: number }

const plainShapes: Shape[] = [
  'none',
  'none',
  'async',
  'inout',
  'inout',
  'inout',
  'inout2',
  'out',
  'two',
  'nested',
]
const otherShapes: Shape[] = [
  'commutative',
  'commutative',
  'concurrent',
  'fileIn',
  'fileOut',
  'fileInout',
  'fileInout',
  'fileCommutative',
]

/** Ending a thread costs half a second, and one that hangs is waited for, so they are rare. */
const failForm = fc.nat(99).map((n): Spec['form'] => (n >= 98 ? 'exit' : n === 97 ? 'hang' : 'throw'))

const call: fc.Arbitrary<CallStep> = fc
  .record({
    shape: fc.constantFrom(...plainShapes, ...otherShapes),
    form: fc.constantFrom<Form[]>('ignore', 'cancelSuccessors'),
    retries: fc.nat(2),
    limit: fc.nat(9).map((n): Limit => (n === 9 ? 'ample' : 'none')),
    failures: fc.constantFrom(0, 0, 0, 0, 0, 1, 1, 2, 3),
    failForm,
    spin: fc.constantFrom(0, 0, 0, 200, 1500),
    ins: fc.array(fc.record({ which: fc.nat(60), wrap: fc.nat(5) }), { maxLength: 3 }),
    targets: fc.array(fc.nat(20), { minLength: 2, maxLength: 2 }),
  })
  .map(seed => {
    const quiet = seed.shape === 'nested' || seed.shape === 'concurrent'
    const dies = seed.failures > 0 && seed.failForm !== 'throw'
    // Only one attempt of it, or it takes for ever.
    const failures = quiet ? 0 : dies ? 1 : seed.failures
    const limit = seed.failForm === 'hang' && failures > 0 ? 'short' : seed.limit
    return { do: 'call', ...seed, failures, limit }
  })

const calm = call.map((step): CallStep => ({ ...step, failures: 0, failForm: 'throw', limit: 'none' }))

const failing = calm.map((step): CallStep => ({
  ...step,
  shape: 'none',
  form: 'fail',
  retries: 0,
  failures: 1,
}))
const successor = calm.map((step): CallStep => ({
  ...step,
  shape: step.shape === 'nested' ? 'none' : step.shape,
  form: 'fail',
}))

const calls = (one: fc.Arbitrary<CallStep>, minLength: number, maxLength: number) =>
  fc.array(one, { minLength, maxLength })

const weighted: [number, fc.Arbitrary<Step>][] = [
  [30, call],
  [5, fc.record({ do: fc.constant('wait'), which: fc.nat(60) })],
  [2, fc.record({ do: fc.constant('waitLater'), which: fc.nat(60) })],
  [3, fc.record({ do: fc.constant('mutate'), which: fc.nat(60), to: fc.nat(999) })],
  [3, fc.record({ do: fc.constant('mutateFresh'), which: fc.nat(60), to: fc.nat(999) })],
  [2, fc.record({ do: fc.constant('group'), calls: calls(call, 0, 4) })],
  [1, fc.record({ do: fc.constant('failGroup'), call: failing, after: calls(successor, 0, 2) })],
  [1, fc.record({ do: fc.constant('failAlone'), call: failing, after: calls(successor, 0, 2) })],
  [0.3, fc.record({ do: fc.constant('cancelGroup'), calls: calls(successor, 1, 3) })],
  [1, fc.constant({ do: 'barrier' })],
  [3, fc.record({ do: fc.constant('turns'), count: fc.nat(20) })],
]

const step = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight: weight * 10, arbitrary })))

export const programs = (steps: number): fc.Arbitrary<Step[]> =>
  fc.array(step, { minLength: 3, maxLength: steps, size: 'max' })
