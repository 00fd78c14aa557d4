import { MillraceError } from '../../core/errors.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { millraceCommand } from './agent-command.ts'
import type { NodeSpec } from './node-spec.ts'

/** Words that the user adds to each ssh. */
export const sshOptions = (): string[] =>
  process.env['MILLRACE_SSH_OPTIONS']?.split(/\s+/).filter(Boolean) ?? []

/** Words for srun, with which something is started on one node of the allocation. */
export function srunWords({ name, cpus }: NodeSpec): string[] {
  // A step has one CPU and a share of the memory unless it asks for more.
  const wide = cpus === null ? [] : [`--cpus-per-task=${cpus}`]
  return ['--overlap', '--nodes=1', '--ntasks=1', `--nodelist=${name}`, ...wide, '--mem=0', '--quiet']
}

/** How `millrace WORDS` is started on a node, with its standard input and output connected to this process. */
export function commandOn(spec: NodeSpec, words: readonly string[]): { program: string; args: string[] } {
  const command = [process.execPath, millraceCommand(), ...words]
  switch (spec.by) {
    case 'local':
      return { program: process.execPath, args: command.slice(1) }
    case 'ssh': {
      const options = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=10', '-T']
      return {
        program: 'ssh',
        args: [...sshOptions(), ...options, spec.host, `exec ${command.map(shellQuote).join(' ')}`],
      }
    }
    case 'slurm':
      return { program: 'srun', args: [...srunWords(spec), ...command] }
    default:
      throw new MillraceError(
        'MR_NODES',
        `node ${spec.name} has a launcher of its own, which streams cannot use`,
        {
          hint: 'Steps of a streaming workflow run on nodes of local:N, ssh:HOST or slurm.',
        },
      )
  }
}
