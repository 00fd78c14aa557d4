import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'

/** How an agent is started. */
type Launcher =
  | { readonly by: 'local' }
  | { readonly by: 'ssh'; readonly host: string }
  /** By srun, on a node of the allocation that the run is in. */
  | { readonly by: 'slurm' }
  /** By a command of the user's, in which {agent} and {name} are replaced. */
  | { readonly by: 'command'; readonly template: string }
  /** By a job of several nodes, which was submitted elsewhere. */
  | { readonly by: 'block' }

/** A machine that is to take part in a run. `cpus` is null where the machine itself says. */
export type NodeSpec = Launcher & {
  readonly name: string
  readonly cpus: number | null
  readonly tags?: readonly string[]
}

/** A node of the allocation that the run is in. */
export interface Allocated {
  readonly name: string
  readonly cpus: number | null
}

const FORMS = ['local', 'ssh', 'slurm']
const MOST_LOCAL = 64
const HINT =
  'Write local:4, local:4x2 (4 agents with 2 CPUs each), ssh:user@h1,h2:8 (h2 with 8 CPUs) or slurm.'

const wrong = (text: string, hint = HINT): MillraceError => new MillraceError('MR_NODES', text, { hint })

/** Reads what `--nodes` says. `slurm` alone means all nodes of the allocation, which are named by `allocated`. */
export function parseNodes(text: string, allocated: () => readonly Allocated[]): NodeSpec[] {
  const [form = '', ...more] = text.trim().split(':')
  const rest = more.join(':')
  switch (form) {
    case 'local':
      return localNodes(text, rest)
    case 'ssh':
      return sshNodes(text, rest)
    case 'slurm':
      if (rest !== '') throw wrong(`--nodes ${text}: slurm takes the nodes of the allocation, and no list`)
      return allocated().map(({ name, cpus }) => ({ by: 'slurm', name, cpus }))
    default: {
      const close = nearest(form, FORMS)
      throw wrong(`--nodes ${text}: '${form}' is no kind of node${close ? `; did you mean ${close}?` : ''}`)
    }
  }
}

function localNodes(text: string, rest: string): NodeSpec[] {
  const match = /^(\d+)(?:x(\d+))?$/.exec(rest)
  const count = Number(match?.[1])
  const cpus = match?.[2] === undefined ? null : Number(match[2])
  if (!match || count < 1 || cpus === 0) throw wrong(`--nodes ${text}: local needs a number of agents from 1`)
  if (count > MOST_LOCAL) {
    throw wrong(
      `--nodes ${text}: ${count} agents on one machine are too many`,
      `Take at most ${MOST_LOCAL}. To try out more there is millrace simulate.`,
    )
  }
  return Array.from({ length: count }, (_, i) => ({ by: 'local', name: `local${i + 1}`, cpus }))
}

function sshNodes(text: string, rest: string): NodeSpec[] {
  const entries = rest.split(',').map(entry => entry.trim())
  const nodes: NodeSpec[] = []
  let user = ''
  for (const entry of entries) {
    const match = /^(?:([^@\s:]+)@)?(\[[^\]\s]+\]|[^@\s:]+)(?::(\d+))?$/.exec(entry)
    if (!match) throw wrong(`--nodes ${text}: '${entry}' is not a host; write user@host or user@host:CPUS`)
    // Who is named once is meant for the hosts that follow.
    if (match[1]) user = match[1]
    const host = (match[2] ?? '').replace(/^\[|\]$/g, '')
    // It would be taken for an option of ssh.
    if (host.startsWith('-')) throw wrong(`--nodes ${text}: '${entry}' is not a host`)
    const cpus = match[3] === undefined ? null : Number(match[3])
    if (cpus === 0) throw wrong(`--nodes ${text}: ${host} needs at least 1 CPU`)
    const same = nodes.filter(node => node.name.split('#')[0] === host).length
    const name = same === 0 ? host : `${host}#${same + 1}`
    nodes.push({ by: 'ssh', name, host: user ? `${user}@${host}` : host, cpus })
  }
  return nodes
}
