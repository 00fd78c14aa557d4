import { Datum } from '../../src/core/data/datum.ts'
import { demandOf, ioDemandOf } from '../../src/core/tasks/demand.ts'
import { Simulation } from '../../src/simulate/simulation.ts'

// Simulates COUNT tasks of one to two seconds on 3,456 nodes of 48 CPUs; prints what that took. With `io` every second
// task is an I/O task that writes what the one before has made to the disk of a node.
const [count = '10000', mode] = process.argv.slice(2)
const tasks = Number(count)
const ssd = { name: 'ssd', path: '/ssd', read: 450e6, write: 450e6, capacity: null }
const storage = mode === 'io' ? { storage: [ssd] } : {}
const nodes = Array.from({ length: 3456 }, (_, i) => ({
  name: `n${i}`,
  cpus: 48,
  memory: 92e9,
  tags: [],
  ...storage,
}))
const simulation = new Simulation({ platform: { nodes } })
const kind = simulation.kind('task')
const demand = demandOf(1, 0, [])
const save = simulation.kind('save')
const saving = ioDemandOf({ bandwidth: 8e6, direction: 'write', size: 290e6, device: null })
const begin = performance.now()
let chance = 1
const compute = (): number => {
  chance = (chance * 48271) % 2147483647
  return 1000 + (chance % 1000)
}
if (mode === 'io') {
  for (let i = 0; i < tasks; i += 2) {
    const value = new Datum(null, false, false)
    const file = new Datum(`/ssd/${i}`, false, false)
    simulation.submit({ kind, demand }, [{ datum: value, mode: 'out' }], { compute: compute() })
    const accesses = [
      { datum: value, mode: 'in' as const },
      { datum: file, mode: 'out' as const },
    ]
    simulation.submit({ kind: save, demand: saving }, accesses, { compute: 0, bytes: [0, 290e6] })
  }
} else for (let i = 0; i < tasks; i++) simulation.submit({ kind, demand }, [], { compute: compute() })
simulation.run()
const seconds = (performance.now() - begin) / 1000
const peak = process.resourceUsage().maxRSS / 1e6
console.log(JSON.stringify({ seconds, each: (seconds * 1e6) / tasks, gigabytes: peak }))
