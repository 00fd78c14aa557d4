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
