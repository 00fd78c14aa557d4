import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, until } from './daemons.ts'

const SSHD = '/usr/sbin/sshd'

/** Why there can be none here; undefined when there can. */
export const sshMissing = [SSHD, '/usr/bin/ssh'].every(path => existsSync(path))
  ? undefined
  : 'sshd is not installed here'

/** Gives `use` the variables with which ssh reaches an sshd of its own on this machine: 127.0.0.1 and localhost are two hosts. */
export async function withSsh<T>(use: (environment: Record<string, string>) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-ssh-'))
  const at = (name: string): string => join(folder, name)
  const port = await freePort()
  for (const name of ['host', 'key'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)])
  // sshd needs it where it starts as root.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true })
  writeFileSync(at('sshd.conf'), sshdConfiguration(at, port))
  const server = spawn(SSHD, ['-D', '-e', '-f', at('sshd.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    let said = ''
    server.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until(() => said.includes('Server listening'), 'sshd')
    return await use(sshVariables(at, port))
  } finally {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What sshd reads, on the loopback alone. The keys `host` and `key` are beside it. */
export const sshdConfiguration = (
  at: (name: string) => string,
  port: number,
  more: readonly string[] = [],
): string =>
  [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host')}`,
    `AuthorizedKeysFile ${at('key.pub')}`,
    'UsePAM no',
    'StrictModes no',
    'PidFile none',
    ...more,
    '',
  ].join('\n')

/** With these variables ssh reaches it. */
export function sshVariables(at: (name: string) => string, port: number): { MILLRACE_SSH_OPTIONS: string } {
  const known = `-o UserKnownHostsFile=${at('known')} -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR`
  return { MILLRACE_SSH_OPTIONS: `-F none -p ${port} -i ${at('key')} ${known}` }
}
