import type { ChildProcess } from 'node:child_process'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

export const freePort = (): Promise<number> =>
  new Promise(resolve => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

/** Milliseconds for a daemon to come up. */
const PATIENCE = 30_000

export async function until(isTrue: () => boolean, what: string): Promise<void> {
  const end = performance.now() + PATIENCE
  while (!isTrue()) {
    if (performance.now() > end) throw new Error(`${what} did not start`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** Ends those that still run, the last one first, and waits until they are gone. */
export async function endDaemons(daemons: readonly ChildProcess[]): Promise<void> {
  const running = daemons.filter(child => child.exitCode === null && child.signalCode === null)
  const gone = running.map(child => new Promise(resolve => child.on('exit', resolve)))
  for (const child of running.toReversed()) child.kill()
  await Promise.all(gone)
}
