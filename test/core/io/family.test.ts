import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeking } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'
import { SharedDevice } from './shared-device.ts'

/** Devices that are best with few or with many writers, and few or many tasks: the search against the paper's ladder. */

const BANDWIDTH = 450
const EXECUTORS = 225
const BYTES = 29 * MB

function time(
  best: number,
  loss: number,
  tasks: number,
  bandwidth: 'auto' | number,
  options: object = {},
): number {
  const rig = new IoRig({ storage: [device('disk', BANDWIDTH)], ioExecutors: EXECUTORS, ...options })
  rig.many(tasks, 'io', { bandwidth })
  new SharedDevice(rig, seeking(BANDWIDTH, best, loss), BYTES).run()
  assert.equal(rig.engine.readyCount, 0)
  return rig.now
}

for (const loss of [0.01, 0.1]) {
  for (const best of [2, 8, 14, 56, 112, 224]) {
    test(`best with ${best} writers, ${loss} lost for each more: the search should not trail the ladder by more than a look`, context => {
      // How long one takes alone is what nobody can know before one has ended.
      const look = (BYTES * best) / (BANDWIDTH * 1e3)
      const told: string[] = []
      for (const tasks of [100, 300, 1000, 2304, 5000]) {
        const [search, paper] = [
          time(best, loss, tasks, 'auto'),
          time(best, loss, tasks, 'auto', { learning: 'paper' }),
        ]
        const fixed = time(best, loss, tasks, (BANDWIDTH * MB) / best)
        told.push(`${tasks}: ${(search / fixed).toFixed(2)} (${(paper / fixed).toFixed(2)})`)
        assert(search <= 1.1 * paper + look, `${tasks} tasks: ${search} against ${paper}`)
        if (tasks >= 2304) assert(search <= 1.1 * paper, `${tasks} tasks: ${search} against ${paper}`)
      }
      context.diagnostic(`times of the best fixed limit, and of the ladder: ${told.join(', ')}`)
    })
  }
}
