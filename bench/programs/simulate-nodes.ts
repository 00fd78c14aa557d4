import { Datum } from '../../src/core/data/datum.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { Simulation } from '../../src/simulate/simulation.ts'

// Simulates small workflows of five tasks each (one, three that read what it made, and one that reads what these made) on nodes
// of 48 CPUs, with a number of workflows open at one time. Files are on disks of nodes. Of 10,000 nodes
// one is lost every minute, and replaced two minutes later; of fewer, as many in proportion. Prints what that took.
const [nodeCount = '10', taskCount = '10000', openCount = '320'] = process.argv.slice(2)
const [count, tasks] = [Number(nodeCount), Math.ceil(Number(taskCount) / 5) * 5]
const CPUS = 48
const MB = 1e6
const disk = { name: 'ssd', path: '/ssd', read: 2e9, write: 2e9, capacity: null }
const nodes = Array.from({ length: count }, (_, i) => ({
  name: `n${i}`,
  cpus: CPUS,
  memory: 92e9,
  tags: [],
  storage: [disk],
  link: 1e9,
}))
const failures = { every: 60_000 * (10_000 / count), replaceAfter: 120_000 }
const simulation = new Simulation({ platform: { nodes }, failures })
const { engine, clock } = simulation
const kinds = ['split', 'work', 'join'].map(name => simulation.kind(name)) as [never, never, never]
const demand = demandOf(1, 0, [])
let chance = 1
const compute = (): number => {
  chance = (chance * 48271) % 2147483647
  return 60_000 + (chance % 60_000)
}
let started = 0
let whole = 0

/** One workflow; when it has ended, what is in between is deleted and the next begins. */
function begin(): void {
  if (started >= tasks) return
  started += 5
  const file = (): Datum => new Datum(`/f${started}`, false, false)
  const first = file()
  const parts = [file(), file(), file()]
  const use = (datum: Datum, mode: 'in' | 'out') => ({ datum, mode })
  simulation.submit({ kind: kinds[0], demand }, [use(first, 'out')], { compute: compute(), bytes: [MB] })
  for (const part of parts) {
    simulation.submit({ kind: kinds[1], demand }, [use(first, 'in'), use(part, 'out')], {
      compute: compute(),
      bytes: [MB, MB],
    })
  }
  const last = simulation.submit(
    { kind: kinds[2], demand },
    parts.map(part => use(part, 'in')),
    { compute: compute(), bytes: [MB, MB, MB] },
  )
  simulation.afterEnd(last, () => {
    whole++
    for (const datum of [first, ...parts]) engine.remove(datum, clock.now)
    begin()
  })
}

const before = process.cpuUsage()
const from = performance.now()
for (let i = 0; i < Number(openCount); i++) begin()
simulation.run()
const seconds = (performance.now() - from) / 1000
// Of its own, whatever else the machine does meanwhile.
const { user, system } = process.cpuUsage(before)
const remade = simulation.lineage?.remade ?? 0
// What is made again is work as well: on few nodes much more lies on each that is lost.
const each = (user + system) / (tasks + remade)
const lost = engine.nodes.filter(({ isLost }) => isLost).length
const isOnce = whole * 5 === tasks && simulation.ended === tasks + remade
const gigabytes = process.resourceUsage().maxRSS / 1e6
console.log(
  JSON.stringify({
    seconds,
    each,
    gigabytes,
    isOnce,
    lost,
    remade,
    simulated: clock.now / 1000,
  }),
)
