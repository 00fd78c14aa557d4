// Starts an agent whose connections go through this process. SIGUSR1 holds all bytes back for as long as MILLRACE_CUT says
// (milliseconds), SIGUSR2 closes all connections. Usage: node proxy.mjs sh FILE
import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

const words = process.argv.slice(2)
const file = words.at(-1)
const script = readFileSync(file, 'utf8')
const [line] = /^\{.*\}$/m.exec(script)
const orders = JSON.parse(line)
const sockets = new Set()
const cut = Number(process.env.MILLRACE_CUT ?? 1500)

const proxyFor = address =>
  new Promise(resolve => {
    const port = Number(/:(\d+)$/.exec(address)[1])
    const server = createServer(here => {
      const there = connect(port, '127.0.0.1')
      for (const [one, other] of [
        [here, there],
        [there, here],
      ]) {
        sockets.add(one)
        one.on('error', () => undefined)
        one.on('close', () => {
          sockets.delete(one)
          other.destroy()
        })
        one.pipe(other)
      }
    })
    server.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${server.address().port}`))
  })

orders.addresses = [await proxyFor(orders.addresses.at(-1))]
orders.leases = [await proxyFor(orders.leases.at(-1))]
const own = `${file}.proxy`
writeFileSync(
  own,
  script.replace(line, () => JSON.stringify(orders)),
  { mode: 0o600 },
)
const [program, ...rest] = [...words.slice(0, -1), own]
const agent = spawn(program, rest, { stdio: ['ignore', 'inherit', 'inherit'] })
agent.on('exit', code => {
  rmSync(own, { force: true })
  process.exit(code ?? 1)
})
process.on('SIGUSR1', () => {
  for (const socket of sockets) socket.pause()
  setTimeout(() => {
    for (const socket of sockets) socket.resume()
  }, cut)
})
process.on('SIGUSR2', () => {
  for (const socket of sockets) socket.destroy()
})
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => agent.kill(signal))
