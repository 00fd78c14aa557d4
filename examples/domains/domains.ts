/**
 * Decomposes a mesh and solves each sub-domain. A sub-domain is solved as soon as it is cut out, while the
 * decomposition goes on.
 *
 *     npx millrace run examples/domains/domains.ts
 *
 * DOMAINS=24         how many sub-domains
 * DOMAINS_LAZY=1     the same without early release
 * DOMAINS_WAIT=10    each cut only waits for 10 ms, and each solver for 70: more CPUs than there are
 * DOMAINS_AT_ONCE=1  all sub-domains come at the end of the decomposition: early release can gain nothing
 */
import { main, task, waitOn } from 'millrace'
import type { Future } from 'millrace'
import { decompose, solve } from './mesh.ts'
import type { Domain } from './mesh.ts'

const { DOMAINS = '24', DOMAINS_LAZY = '', DOMAINS_AT_ONCE = '', DOMAINS_WAIT = '0' } = process.env
const PARTS = Number(DOMAINS)
const WIDTH = 160
const SWEEPS = 250
const WAIT = Number(DOMAINS_WAIT)

const wait = (milliseconds: number): void => {
  if (milliseconds > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
}

function* cut(parts: number): Generator<Domain> {
  for (const domain of decompose(parts, WAIT > 0 ? 8 : WIDTH, SWEEPS)) {
    wait(WAIT)
    yield domain
  }
}

export const domains = task({ name: 'domains' }, function* (parts: number) {
  // Spread out, all of them are made before the first is released.
  yield* DOMAINS_AT_ONCE ? [...cut(parts)] : cut(parts)
})
export const allDomains = task({ name: 'allDomains', returns: PARTS }, (parts: number): readonly Domain[] => [
  ...cut(parts),
])
export const solveDomain = task({ name: 'solveDomain' }, (domain: Domain) => {
  wait(7 * WAIT)
  return solve(domain, SWEEPS)
})

main(async () => {
  // All threads are there, and have compiled the solver, before the time is taken.
  const [small] = decompose(1, 40, 1)
  await waitOn(Array.from({ length: 24 }, () => solveDomain(small as Domain)))
  const start = performance.now()
  const norms: Future<number>[] = []
  if (DOMAINS_LAZY) for (const domain of allDomains(PARTS)) norms.push(solveDomain(domain))
  else for await (const domain of domains(PARTS)) norms.push(solveDomain(domain))
  const norm = Math.hypot(...(await waitOn(norms)))
  console.log(JSON.stringify({ domains: norms.length, norm, seconds: (performance.now() - start) / 1000 }))
})
