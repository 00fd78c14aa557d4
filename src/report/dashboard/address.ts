import { hostname, userInfo } from 'node:os'
import type { PageAddresses } from './server.ts'

/**
 * The command that makes the page of another machine reachable here, or null where people sit at this machine. Behind ssh it
 * names the address that the session itself uses; on a node of a batch system it goes by way of the machine that the job was
 * submitted on.
 */
export function tunnelLine(port: number, env: NodeJS.ProcessEnv = process.env): string | null {
  const forward = `ssh -N -L ${port}:127.0.0.1:${port}`
  const [, , address, sshPort] = (env['SSH_CONNECTION'] ?? '').split(' ')
  if (address) {
    const own = sshPort === undefined || sshPort === '22' ? '' : ` -p ${sshPort}`
    return `${forward}${own} ${user()}@${address}`
  }
  const submitHost = env['SLURM_SUBMIT_HOST'] ?? env['PBS_O_HOST']
  if (submitHost) return `${forward} -J ${user()}@${submitHost} ${user()}@${hostname()}`
  return null
}

function user(): string {
  try {
    return userInfo().username
  } catch {
    return 'USER'
  }
}

/** What is printed when a page is served. */
export function addressLines({ url, controlUrl }: PageAddresses): string[] {
  const tunnel = tunnelLine(Number(new URL(url).port))
  return [
    `dashboard    ${url}`,
    ...(controlUrl === null ? [] : [`control      ${controlUrl} (lets who has it act on the run)`]),
    ...(tunnel === null ? [] : [`             from your own machine, first: ${tunnel}`]),
  ]
}
