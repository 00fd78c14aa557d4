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
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host')}`,
    `AuthorizedKeysFile ${at('key.pub')}`,
    'UsePAM no',
    'StrictModes no',
    'PidFile none',
  ]
  writeFileSync(at('sshd.conf'), `${settings.join('\n')}\n`)
  const server = spawn(SSHD, ['-D', '-e', '-f', at('sshd.conf')], { stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    let said = ''
    server.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until(() => said.includes('Server listening'), 'sshd')
    const known = `-o UserKnownHostsFile=${at('known')} -o StrictHostKeyChecking=accept-new -o LogLevel=ERROR`
    return await use({ MILLRACE_SSH_OPTIONS: `-F none -p ${port} -i ${at('key')} ${known}` })
  } finally {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
