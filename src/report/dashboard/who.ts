import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'

/**
 * Who is at the other end of a connection: the user of this machine to whom the socket belongs, as the system tells it, or the
 * address where that is another machine. Behind ssh it is the user of the session.
 */
export async function whoIs({ remoteAddress = '', remotePort = 0, localPort = 0 }: Socket): Promise<string> {
  const isHere = /^(::ffff:)?127\.|^::1$/.test(remoteAddress)
  const uid = isHere ? await ownerOf(remotePort, localPort) : null
  return uid === null ? `someone at ${remoteAddress || 'an unknown address'}` : nameOf(uid)
}

/** The user id of the socket between two ports of this machine, from the tables of the kernel. */
async function ownerOf(port: number, to: number): Promise<number | null> {
  const hex = (value: number): string => `:${value.toString(16).toUpperCase().padStart(4, '0')}`
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'utf8').catch(() => '')
    for (const line of text.split('\n')) {
      const [, local, remote, , , , , uid] = line.trim().split(/\s+/)
      if (local?.endsWith(hex(port)) && remote?.endsWith(hex(to)) && uid !== undefined) return Number(uid)
    }
  }
  return null
}

function nameOf(uid: number): Promise<string> {
  return new Promise(resolve => {
    execFile('id', ['-nu', String(uid)], { timeout: 2000 }, (error, stdout) => {
      const name = stdout.trim()
      resolve(error || name === '' ? `user ${uid}` : name)
    })
  })
}
