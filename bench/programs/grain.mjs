// Equal tasks that compute for so long: grain.mjs MILLISECONDS
import { barrier, main, task } from 'millrace'
import { speedUps, work } from './grain-work.mjs'

export const compute = task({ name: 'compute' }, work)

main(() =>
  speedUps(Number(process.argv[2]), async (tasks, steps) => {
    for (let i = 0; i < tasks; i++) compute(steps)
    await barrier()
  }),
)
