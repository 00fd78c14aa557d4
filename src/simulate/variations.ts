import { MillraceError } from '../core/errors.ts'
import { nearest } from '../general/nearest.ts'
import { parseBytes, parseCount, parseRate } from '../general/units.ts'
import { MOST_CPUS, MOST_NODES } from '../storage/machine-parser.ts'
import type { DeviceModel, NodeModel, Platform } from './machine/platform.ts'

/** What a sweep changes, from value to value. */
export interface Sweep {
  readonly name: string
  readonly values: readonly string[]
}

/** A change of one property: of the platform, or of what all I/O tasks ask for. */
export interface Change {
  platform: Platform
  /** Bytes per second that each I/O task asks for, instead of what it says itself. */
  bandwidth: number | null
}

type Apply = (platform: Platform, value: string) => Change | null

const onNodes =
  (parse: (value: string) => number | null, change: (node: NodeModel, value: number) => NodeModel): Apply =>
  (platform, text) => {
    const value = parse(text)
    if (value === null || value <= 0) return null
    return { platform: { nodes: platform.nodes.map(node => change(node, value)) }, bandwidth: null }
  }

const number = (text: string): number | null =>
  Number(text) > 0 && Number(text) < Infinity ? Number(text) : null

const countUpTo =
  (most: number) =>
  (text: string): number | null => {
    const count = parseCount(text)
    return count !== null && count <= most ? count : null
  }

/** What can be swept over, and what to write for it. */
const SWEEPS: Record<string, { apply: Apply; example: string }> = {
  bandwidth: {
    apply: (platform, text) => {
      const rate = parseRate(text)
      return rate ? { platform, bandwidth: rate } : null
    },
    example: '2,4,8 (MB/s that each I/O task asks for)',
  },
  nodes: {
    apply: (platform, text) => {
      const count = countUpTo(MOST_NODES)(text)
      return count ? { platform: withNodes(platform, count), bandwidth: null } : null
    },
    example: '1,2,4 (nodes like those of the platform)',
  },
  cpus: {
    apply: onNodes(countUpTo(MOST_CPUS), (node, cpus) => ({ ...node, cpus })),
    example: '8,16 (CPUs of each node)',
  },
  speed: {
    apply: onNodes(number, (node, speed) => ({ ...node, speed })),
    example: '1,2 (speed of the CPUs)',
  },
  pageCache: {
    apply: onNodes(parseBytes, (node, cache) => ({ ...node, cache })),
    example: '8GB,16GB (page cache of each node)',
  },
  ioExecutors: {
    apply: onNodes(countUpTo(MOST_CPUS), (node, ioExecutors) => ({ ...node, ioExecutors })),
    example: '64,128 (I/O tasks at once on each node)',
  },
}

/** Of one device, on all nodes that have it: `ssd.bandwidth`. */
const DEVICE_SWEEPS: Record<
  string,
  { parse: (text: string) => number | null; change: (value: number) => Partial<DeviceModel>; example: string }
> = {
  bandwidth: { parse: parseRate, change: rate => ({ read: rate, write: rate }), example: '500MB/s,1GB/s' },
  capacity: { parse: parseBytes, change: capacity => ({ capacity }), example: '500GB,1TB' },
}

const OF_DEVICE = new RegExp(`^(.+)\\.(${Object.keys(DEVICE_SWEEPS).join('|')})$`)

function changeDevice(platform: Platform, device: string, key: string, value: string): Change {
  const names = new Set(platform.nodes.flatMap(({ storage = [] }) => storage.map(({ name }) => name)))
  if (!names.has(device)) {
    const close = nearest(device, [...names])
    throw new MillraceError(
      'MR_OPTION',
      `--sweep: the platform has no device '${device}'${close ? `; did you mean ${close}?` : ''}`,
      { hint: names.size > 0 ? `It has ${[...names].join(', ')}.` : 'It describes no storage.' },
    )
  }
  const { parse, change, example } = DEVICE_SWEEPS[key] as (typeof DEVICE_SWEEPS)[string]
  const amount = parse(value)
  if (!amount) refuseValue(`${device}.${key}`, value, example)
  const nodes = platform.nodes.map(node => {
    const storage = node.storage?.map(one => (one.name === device ? { ...one, ...change(amount) } : one))
    return storage ? { ...node, storage } : node
  })
  return { platform: { nodes }, bandwidth: null }
}

function refuseValue(name: string, value: string, example: string): never {
  throw new MillraceError('MR_UNIT', `--sweep: ${name} cannot be '${value}'`, {
    hint: `Write for instance ${name}=${example}.`,
  })
}

/** From `bandwidth=2,4,8`. */
export function parseSweep(text: string): Sweep {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(0, at))
  const values = text
    .slice(at + 1)
    .split(',')
    .filter(Boolean)
  if (!(Object.hasOwn(SWEEPS, name) || OF_DEVICE.test(name)) || values.length === 0) {
    const close = nearest(name, Object.keys(SWEEPS))
    const ofDevices = Object.entries(DEVICE_SWEEPS)
      .map(([key, { example }]) => `DEVICE.${key}=${example}`)
      .join('; ')
    throw new MillraceError(
      'MR_OPTION',
      `--sweep cannot be '${text}'${close && close !== name ? `; did you mean ${close}?` : ''}`,
      {
        hint: `Write NAME=VALUE,VALUE. ${Object.entries(SWEEPS)
          .map(([key, { example }]) => `${key}=${example}`)
          .join('; ')}; ${ofDevices}.`,
      },
    )
  }
  return { name, values }
}

export function changed(platform: Platform, { name }: Sweep, value: string): Change {
  const [, device, key] = OF_DEVICE.exec(name) ?? []
  if (device !== undefined && key !== undefined) return changeDevice(platform, device, key, value)
  const { apply, example } = SWEEPS[name] as { apply: Apply; example: string }
  return apply(platform, value) ?? refuseValue(name, value, example)
}

/** The first n nodes; if there are fewer, more like the last one. */
function withNodes({ nodes }: Platform, count: number): Platform {
  const last = nodes.at(-1) as NodeModel
  return {
    nodes: Array.from(
      { length: count },
      (_, i) => nodes[i] ?? { ...last, name: `${last.name}+${i + 1 - nodes.length}` },
    ),
  }
}
