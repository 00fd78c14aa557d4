import { availableParallelism, hostname, totalmem } from 'node:os'
import { MillraceError } from '../core/errors.ts'
import type { NodeDescription } from '../core/schedule/machine.ts'
import { parseBytes, parseCount } from '../general/units.ts'
import { loadMachine } from '../storage/machine-file.ts'
import type { MachineDescription, MachineNode } from '../storage/machine-file.ts'
import type { BindMode, BindSettings } from '../node/cpus/binding.ts'
import { findGpus } from '../node/cpus/find-gpus.ts'
import { readTopology, usableCpus } from '../node/cpus/topology.ts'
import { describedStorage, ioExecutors, makeFolders } from './describe-storage.ts'
import { knownDevices } from './known-devices.ts'
import type { RunOptions } from './run-options.ts'

/** Each takes memory, also if it is never used. */
const MOST_CPUS = 10_000

/** What this machine has: as the options say, else as its description says, else as it is found. */
export function describeNode(options: RunOptions, described: MachineNode | null): NodeDescription {
  const cpus =
    options.cpus === undefined
      ? (described?.cpus ?? usableCpus(options.hyperThreads ?? true))
      : parseCount(options.cpus)
  if (cpus === null || cpus < 1) {
    throw new MillraceError(
      'MR_UNIT',
      `cpus is '${String(options.cpus)}', which is not a whole number from 1`,
    )
  }
  if (cpus > MOST_CPUS) {
    throw new MillraceError('MR_UNIT', `cpus is ${cpus}, and no machine has more than ${MOST_CPUS}`, {
      hint: `This one has ${availableParallelism()}. To try out larger ones there is millrace simulate.`,
    })
  }
  const memory = options.memory === undefined ? (described?.memory ?? totalmem()) : parseBytes(options.memory)
  if (memory === null) {
    throw new MillraceError(
      'MR_UNIT',
      `memory is '${String(options.memory)}', which is not a size such as 16GB`,
    )
  }
  const tags = options.tags ?? described?.tags ?? []
  const devices = describedStorage(options.machine, described)
  makeFolders(devices)
  const storage = knownDevices(devices)
  const { read = null, write = null } = described ?? {}
  const { cpus: known, domains } = readTopology(options.hyperThreads ?? true)
  const gpus = described?.gpus ?? findGpus()
  return {
    name: described?.name ?? 'local',
    cpus,
    memory,
    tags,
    ioExecutors: ioExecutors(options, described),
    ...(gpus.length > 0 ? { gpus } : {}),
    ...(domains && cpus <= known.length ? { domains } : {}),
    ...(storage.length > 0 ? { storage } : {}),
    ...(read === null && write === null ? {} : { bandwidth: bandwidthOf(read, write) }),
  }
}

const BIND_MODES: readonly BindMode[] = ['wide', 'all', 'off']

export function bindSettings({ bind = 'wide', hyperThreads = true }: RunOptions): BindSettings {
  const mode = bind === true ? 'all' : bind === false ? 'off' : bind
  if (!(BIND_MODES as readonly string[]).includes(mode)) {
    throw new MillraceError('MR_OPTION', `bind cannot be '${mode}'`, {
      hint: `It is one of ${BIND_MODES.join(', ')}.`,
    })
  }
  return { mode: mode as BindMode, hyperThreads }
}

const bandwidthOf = (read: number | null, write: number | null): { read?: number; write?: number } => ({
  ...(read === null ? {} : { read }),
  ...(write === null ? {} : { write }),
})

export function describedNode({ machine }: RunOptions): MachineNode | null {
  return machine === undefined ? null : ownNode(loadMachine(machine))
}

/** The node of a description that this machine is: the only one, or the one with its name. */
export function ownNode({ file, nodes }: MachineDescription): MachineNode {
  const [first] = nodes
  if (first && nodes.length === 1) return first
  const name = process.env['MILLRACE_NODE'] || hostname()
  const own = nodes.find(node => node.name === name || node.name === name.split('.')[0])
  if (own) return own
  throw new MillraceError(
    'MR_MACHINE',
    `${file} describes ${nodes.length} nodes, and none is called ${name}`,
    {
      hint: `Set MILLRACE_NODE to the node that this machine is, such as ${first?.name}.`,
    },
  )
}
