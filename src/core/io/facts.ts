import type { DeviceFacts, IoFacts } from '../events.ts'
import type { Device } from './device.ts'
import type { IoOptions } from './io-core.ts'

/** What reports know about the devices of a run and their use. */

export const deviceFacts = (devices: readonly Device[]): DeviceFacts[] =>
  devices.map(({ name, path, node, read, write, capacity }) => ({
    name,
    path,
    node,
    read: finite(read.limit),
    write: finite(write.limit),
    capacity: finite(capacity),
  }))

export const ioFacts = ({ ioPolicy = 'fcfs', flush = 'off', prefetch = false }: IoOptions): IoFacts => ({
  policy: ioPolicy,
  flush,
  prefetch,
})

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)
