import { secondsOf } from './eager/example.ts'
import { bench } from './harness.ts'

const EAGER = 'millrace, sub-domains released as they are cut'
const LAZY = 'all sub-domains at the end of the decomposition'
const eager = { DOMAINS: '24' }
const lazy = { ...eager, DOMAINS_LAZY: '1' }
const atOnce = { ...eager, DOMAINS_AT_ONCE: '1' }
const wide = { DOMAINS: '64', DOMAINS_WAIT: '10', MILLRACE_CPUS: '8' }
const shape = { unit: 's', better: 'lower', take: 'median', rounds: 5 } as const

await bench('eager-domains', [
  {
    ...shape,
    name: 'domains',
    about:
      'a decomposition that takes as long as all its solvers together, 2 CPUs (two thirds is the least there can be)',
    arms: [
      { system: EAGER, run: secondsOf('domains/domains.ts', eager) },
      { system: LAZY, run: secondsOf('domains/domains.ts', lazy) },
    ],
  },
  {
    ...shape,
    name: 'domains-wide',
    about:
      '64 sub-domains on 8 CPUs that are modelled: a cut waits for 10 ms, a solver for 70 ms, instead of computing',
    arms: [
      { system: EAGER, run: secondsOf('domains/domains.ts', { ...wide }) },
      { system: LAZY, run: secondsOf('domains/domains.ts', { ...wide, DOMAINS_LAZY: '1' }) },
    ],
    goals: [{ of: EAGER, against: LAZY, atMost: 2 / 3 }],
  },
  {
    ...shape,
    // What is left of a small difference after the noise of a machine that others use too.
    take: 'best',
    rounds: 9,
    name: 'domains-at-once',
    about:
      'the same when all sub-domains are there at once, at the end: nothing to gain, and nothing to lose',
    arms: [
      { system: EAGER, run: secondsOf('domains/domains.ts', atOnce) },
      { system: LAZY, run: secondsOf('domains/domains.ts', lazy) },
    ],
    goals: [{ of: EAGER, against: LAZY, atMost: 1.02 }],
  },
])
