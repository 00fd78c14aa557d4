import { MillraceError } from '../errors.ts'
import type { Demand } from '../tasks/demand.ts'
import type { IoNode } from './io-node.ts'
import { bytesText, rateText } from './words.ts'

/** Throws if no node has a device that could ever do what is asked, were it idle; names both numbers. */
export function refuseIo(
  kind: string,
  { storage, io, memory, tags }: Demand,
  nodes: readonly IoNode[],
): void {
  if (!storage) return
  const refuse = (text: string): never => {
    throw new MillraceError('MR_CONSTRAINT', `task ${kind} asks for ${text}`)
  }
  const able = nodes.filter(({ node }) => memory <= node.memory && tags.every(tag => node.tags.has(tag)))
  const devices = able.flatMap(node =>
    node.layers
      .filter(({ name }) => storage.device === null || name === storage.device)
      .map(device => ({ node, device })),
  )
  if (storage.device !== null && devices.length === 0)
    refuse(`storage '${storage.device}', but no node has it`)
  if (io && able.every(({ executors }) => executors === 0)) refuse('an I/O executor, but no node has one')
  if (devices.length === 0) return
  const { size } = storage
  const bandwidth = leastBandwidth(storage.bandwidth)
  const way = storage.direction ?? 'write'
  const limitOf = ({ node, device }: (typeof devices)[number]): number =>
    Math.min(device[way].limit, node[way].limit)
  const fastest = devices.reduce((a, b) => (limitOf(b) > limitOf(a) ? b : a))
  const most = limitOf(fastest)
  if (bandwidth > most && most < fastest.device[way].limit)
    refuse(
      `${rateText(bandwidth)} of bandwidth, but all storage of ${fastest.node.node.name} together has ${rateText(most)}`,
    )
  if (bandwidth > most)
    refuse(
      `${rateText(bandwidth)} of bandwidth, but the fastest storage, ${fastest.device.name}, has ${rateText(most)}`,
    )
  if (size === null) return
  const largest = devices.reduce((a, b) => (b.device.capacity > a.device.capacity ? b : a)).device
  if (size > largest.capacity) {
    refuse(
      `${bytesText(size)} of storage, but the largest, ${largest.name}, has ${bytesText(largest.capacity)}`,
    )
  }
  if (devices.some(one => bandwidth <= limitOf(one) && size <= one.device.capacity)) return
  refuse(`${rateText(bandwidth)} and ${bytesText(size)} of storage, but no device has both`)
}

function leastBandwidth(bandwidth: NonNullable<Demand['storage']>['bandwidth']): number {
  if (typeof bandwidth === 'number') return bandwidth
  return bandwidth !== null && typeof bandwidth === 'object' ? bandwidth.min : 0
}
