import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { LEASE } from '../lease/lease.ts'
import { removeOrders } from '../launch/orders.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import type { AgentHello, AgentProbe, AgentView } from '../link/start.ts'
import { Cluster } from './cluster.ts'
import type { NodeLink } from './node-link.ts'

/** What was found of a node: what it has and sees, or why it cannot be used. */
export interface NodeCheck {
  readonly name: string
  readonly by: NodeSpec['by']
  readonly problem: string | null
  readonly hello: AgentHello | null
  readonly view: AgentView | null
  /** From its start to its call, and from a question to its answer; milliseconds. */
  readonly startMs: number
  readonly roundTripMs: number
  /** How far its clock is ahead of ours; milliseconds, as exact as half a round trip. */
  readonly clockMs: number
}

const CALL_TIMEOUT = 30_000
/** The quickest of this many round trips counts as the latency: slower ones waited for something. */
const ROUND_TRIPS = 5

/** Starts an agent on each node, asks it, and ends it. Nodes that do not come are in the result, too. */
export async function checkNodes(specs: readonly NodeSpec[], version: string): Promise<NodeCheck[]> {
  const run = `check${process.pid.toString(36)}${Date.now().toString(36)}`
  const file = join(process.cwd(), '.millrace', `probe-${run}`)
  const cluster = new Cluster([], run, version, LEASE.dead, true)
  const alive = setInterval(() => undefined, 1000)
  try {
    mkdirSync(join(process.cwd(), '.millrace'), { recursive: true })
    writeFileSync(file, run)
    await cluster.start()
    return await ask(cluster, specs, { cwd: process.cwd(), file, text: run })
  } finally {
    cluster.end()
    await cluster.gone(3000)
    clearInterval(alive)
    rmSync(file, { force: true })
    removeOrders(run)
  }
}

function ask(cluster: Cluster, specs: readonly NodeSpec[], probe: AgentProbe): Promise<NodeCheck[]> {
  const startedAt = performance.now()
  const checks = new Map<number, NodeCheck>()
  return new Promise(resolve => {
    const timer = setTimeout(() => {
      for (const [node] of specs.entries()) refuse(node, `no call within ${CALL_TIMEOUT / 1000} s`)
    }, CALL_TIMEOUT)
    const add = (node: number, check: NodeCheck): void => {
      if (checks.has(node)) return
      checks.set(node, check)
      if (checks.size < specs.length) return
      clearTimeout(timer)
      resolve(specs.map((_, i) => checks.get(i) as NodeCheck))
    }
    const refuse = (node: number, problem: string): void => {
      const { name, by } = specs[node] as NodeSpec
      const nothing = { hello: null, view: null, startMs: 0, roundTripMs: 0, clockMs: 0 }
      add(node, { name, by, problem, ...nothing })
    }
    cluster.events = {
      joined: node => {
        const { name, by } = specs[node] as NodeSpec
        const startMs = performance.now() - startedAt
        void probeOften(cluster.links[node] as NodeLink, probe).then(found => {
          add(node, { name, by, problem: null, hello: cluster.helloOf(node), startMs, ...found })
        })
      },
      failed: (name, reason) =>
        refuse(
          specs.findIndex(spec => spec.name === name),
          reason,
        ),
      suspected: () => undefined,
    }
    for (const spec of specs) cluster.add(spec)
  })
}

async function probeOften(
  link: NodeLink,
  probe: AgentProbe,
): Promise<Pick<NodeCheck, 'view' | 'roundTripMs' | 'clockMs'>> {
  let best: Pick<NodeCheck, 'view' | 'roundTripMs' | 'clockMs'> | null = null
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [askedAt, askedClock] = [performance.now(), Date.now()]
    const view = await link.probe(probe)
    const roundTripMs = performance.now() - askedAt
    const clockMs = view.clock - askedClock - roundTripMs / 2
    if (!best || roundTripMs < best.roundTripMs) best = { view, roundTripMs, clockMs }
  }
  return best as Pick<NodeCheck, 'view' | 'roundTripMs' | 'clockMs'>
}
