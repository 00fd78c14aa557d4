import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

const PREFIX = '/user/ada/proxy'

/** Serves what is at this address below a path of its own, as a reverse proxy does. Returns the address there. */
export async function behindProxy(address: string): Promise<string> {
  const target = new URL(address)
  const proxy = createServer((incoming, outgoing) => {
    const { method = 'GET', url = '' } = incoming
    if (!url.startsWith(`${PREFIX}/`)) return void outgoing.writeHead(404).end()
    // As nginx does unless it is told otherwise: the server sees its own name, and not the one in the browser.
    const headers = { ...incoming.headers, host: target.host, 'x-forwarded-for': '10.0.0.7' }
    const path = url.slice(PREFIX.length)
    const onward = request({ host: target.hostname, port: target.port, path, method, headers }, answer => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    outgoing.on('close', () => onward.destroy())
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  after(() => {
    proxy.close()
    proxy.closeAllConnections()
  })
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PREFIX}${target.pathname}`
}
