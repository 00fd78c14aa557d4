import { existsSync } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'
import { loadMachine } from '../../storage/machine-file.ts'
import type { MachineNode } from '../../storage/machine-file.ts'
import { allocatedNodes, isInAllocation } from './allocation.ts'
import { parseNodes } from './node-spec.ts'
import type { NodeSpec } from './node-spec.ts'

/** What was asked for, as text; `isLaunched`: by the command line, which looks for nodes by itself. */
export interface NodesWish {
  readonly nodes?: string
  readonly isLaunched: boolean
}

/** The nodes that a run is to have; null where this machine is the only one. */
export function findNodes({ nodes, isLaunched }: NodesWish): NodeSpec[] | null {
  if (nodes === 'here') return null
  if (nodes === undefined) {
    return isLaunched && isInAllocation(process.env) ? parseNodes('slurm', allocatedNodes) : null
  }
  return isFile(nodes) ? describedNodes(nodes) : parseNodes(nodes, allocatedNodes)
}

const isFile = (text: string): boolean => /\.(?:ya?ml|json)$/.test(text) || existsSync(text)

/** The nodes of a machine description, each with its launcher. */
export function describedNodes(file: string): NodeSpec[] {
  return loadMachine(file).nodes.map(node => described(file, node))
}

function described(file: string, { name, cpus, tags, launch, storage }: MachineNode): NodeSpec {
  const common = { name, cpus, tags }
  if (storage.some(({ path }) => path !== null)) {
    throw new MillraceError('MR_NODES', `${file}: node ${name} has storage layers`, {
      hint: 'Storage layers are for one machine so far: leave out the paths of devices, or use --machine.',
    })
  }
  if (launch === null || launch === 'local') return { by: 'local', ...common }
  if (launch === 'slurm') return { by: 'slurm', ...common }
  const [, host] = /^ssh(?:[: ]\s*(\S+))?$/.exec(launch) ?? [null, null]
  if (host === null) return { by: 'command', template: launch, ...common }
  if (host?.startsWith('-')) {
    throw new MillraceError('MR_NODES', `${file}: node ${name}: '${host}' is not a host`)
  }
  return { by: 'ssh', host: host ?? name, ...common }
}
