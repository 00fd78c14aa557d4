import type { MachineDescription, MachineDevice, MachineNode } from '../../storage/machine-file.ts'
import type { DeviceModel, NodeModel, Platform } from '../machine/platform.ts'

/** The models that a machine description asks for. What it leaves out is not limited, and takes no time. */
export function platformOf({ nodes }: MachineDescription): Platform {
  return { nodes: nodes.map(nodeOf) }
}

function nodeOf(node: MachineNode): NodeModel {
  const { name, cpus, memory, tags, ioExecutors, network, pageCache, cacheBandwidth, speed, cores } = node
  return {
    name,
    cpus: cpus ?? 1,
    memory: memory ?? Number.MAX_SAFE_INTEGER,
    tags,
    storage: node.storage.map(deviceOf),
    ...(ioExecutors === null ? {} : { ioExecutors }),
    ...(node.read === null && node.write === null
      ? {}
      : { bandwidth: { read: node.read ?? Infinity, write: node.write ?? Infinity } }),
    ...(network === null ? {} : { link: network }),
    ...(pageCache === null ? {} : { cache: pageCache }),
    ...(cacheBandwidth === null ? {} : { cacheRate: cacheBandwidth }),
    ...(speed === null ? {} : { speed }),
    ...(cores === null ? {} : { cores }),
  }
}

function deviceOf(device: MachineDevice): DeviceModel {
  const { name, path, read, write, capacity, shared, cpus, latency, stream, knee, falloff } = device
  const { oneArm, buffer, syncTime, streamWrite } = device
  return {
    name,
    path: path ?? `/${name}`,
    read,
    write,
    capacity,
    shared,
    ...(cpus === null ? {} : { cpus }),
    ...(device.maxIntermediate === null ? {} : { maxIntermediate: device.maxIntermediate }),
    ...(latency === 0 ? {} : { latency }),
    ...(stream === null ? {} : { stream }),
    ...(streamWrite === null ? {} : { streamWrite }),
    ...(knee === null ? {} : { knee }),
    ...(falloff === null ? {} : { falloff }),
    ...(oneArm ? { oneArm } : {}),
    ...(buffer === null ? {} : { buffer }),
    ...(syncTime === 0 ? {} : { sync: syncTime }),
  }
}
