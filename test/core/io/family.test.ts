import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seeking } from './fake-storage.ts'
import { IoRig, MB, device } from './io-rig.ts'
import { SharedDevice } from './shared-device.ts'

/** Devices that are best with few or with many writers, and few or many tasks: the search against the paper's ladder. */

const BANDWIDTH = 450
const EXECUTORS = 225
const BYTES = 29 * MB

interface How {
  learning?: 'paper'
  cpus?: number
  /** The sizes of files are seen while tasks write them. */
  isSeen?: boolean
}

function time(
  best: number,
  loss: number,
  tasks: number,
  bandwidth: 'auto' | number,
  { isSeen = true, ...options }: How = {},
): number {
  const rig = new IoRig({ storage: [device('disk', BANDWIDTH)], ioExecutors: EXECUTORS, ...options })
  rig.many(tasks, 'io', { bandwidth })
  new SharedDevice(rig, seeking(BANDWIDTH, best, loss), BYTES, isSeen).run()
  assert.equal(rig.engine.readyCount, 0)
  return rig.now
}

const ladders = new Map<string, number>()

function ladder(best: number, loss: number, tasks: number): number {
  const key = `${best} ${loss} ${tasks}`
  const known = ladders.get(key) ?? time(best, loss, tasks, 'auto', { learning: 'paper' })
  ladders.set(key, known)
  return known
}

const FAMILY = [0.01, 0.1].flatMap(loss => [2, 8, 14, 56, 112, 224].map(best => ({ best, loss })))
const COUNTS = [100, 300, 1000, 2304, 5000]

for (const { best, loss } of FAMILY) {
  const about = `best with ${best} writers, ${loss} lost for each more`
  test(`${about}: the search should take at most 1.1 times the ladder's time`, context => {
    const told: string[] = []
    for (const tasks of COUNTS) {
      const [search, paper] = [time(best, loss, tasks, 'auto'), ladder(best, loss, tasks)]
      const fixed = time(best, loss, tasks, (BANDWIDTH * MB) / best)
      told.push(`${tasks}: ${(search / fixed).toFixed(2)} (${(paper / fixed).toFixed(2)})`)
      assert(search <= 1.1 * paper, `${tasks} tasks: ${search} against ${paper}`)
    }
    context.diagnostic(`times of the best fixed limit, and of the ladder: ${told.join(', ')}`)
  })

  test(`${about}: a machine with many CPUs should not change that`, () => {
    for (const tasks of COUNTS.slice(0, -1)) {
      const [search, paper] = [time(best, loss, tasks, 'auto', { cpus: 48 }), ladder(best, loss, tasks)]
      assert(search <= 1.1 * paper, `${tasks} tasks: ${search} against ${paper}`)
    }
  })

  test(`${about}: where files cannot be seen to grow, it should trail by the time of one task at most`, () => {
    // How long one takes alone is not known before one has ended.
    const look = (BYTES * best) / (BANDWIDTH * 1e3)
    for (const tasks of COUNTS.slice(0, -1)) {
      const [search, paper] = [time(best, loss, tasks, 'auto', { isSeen: false }), ladder(best, loss, tasks)]
      assert(search <= 1.1 * paper + look, `${tasks} tasks: ${search} against ${paper}`)
      if (tasks >= 2304) assert(search <= 1.1 * paper, `${tasks} tasks: ${search} against ${paper}`)
    }
  })
}
