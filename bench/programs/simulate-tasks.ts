import { demandOf } from '../../src/core/task.ts'
import { Simulation } from '../../src/simulate/simulation.ts'

// Simulates so many tasks of one to two seconds on 3,456 nodes of 48 CPUs; prints what that took.
const [tasks = 10_000] = process.argv.slice(2).map(Number)
const nodes = Array.from({ length: 3456 }, (_, i) => ({ name: `n${i}`, cpus: 48, memory: 92e9, tags: [] }))
const simulation = new Simulation({ platform: { nodes } })
const kind = simulation.kind('task')
const demand = demandOf(1, 0, [])
const begin = performance.now()
let chance = 1
for (let i = 0; i < tasks; i++) {
  chance = (chance * 48271) % 2147483647
  simulation.submit({ kind, demand }, [], { compute: 1000 + (chance % 1000) })
}
simulation.run()
const seconds = (performance.now() - begin) / 1000
const peak = process.resourceUsage().maxRSS / 1e6
console.log(JSON.stringify({ seconds, each: (seconds * 1e6) / tasks, gigabytes: peak }))
