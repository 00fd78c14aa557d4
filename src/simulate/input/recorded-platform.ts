import type { Platform } from '../machine/platform.ts'
import type { RecordedRun } from './recorded-run.ts'

/** The machine that a run was recorded on, as far as the journal knows it. What was read once is kept in memory. */
export function recordedPlatform({ facts, demands }: RecordedRun): Platform {
  const { nodes, devices = [] } = facts
  // It had what was asked for, or the tasks would not have run.
  const tags = [...new Set([...demands.values()].flatMap(demand => demand.tags))]
  return {
    nodes: nodes.map(({ name, cpus, memory, ioExecutors }, i) => {
      const storage = devices
        .filter(({ node }) => node === null || node === i)
        .map(({ name: device, path, node, read, write, capacity }) => ({
          name: device,
          path,
          read,
          write,
          capacity,
          shared: node === null,
        }))
      return {
        name,
        cpus,
        memory,
        tags,
        cache: memory,
        ...(storage.length > 0 ? { storage } : {}),
        ...(ioExecutors === undefined ? {} : { ioExecutors }),
      }
    }),
  }
}
