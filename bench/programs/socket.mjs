// Milliseconds for 100 MB from another process over one plain socket, from the request to the last byte in one buffer. Prints { value }.
import { fork } from 'node:child_process'
import { connect, createServer } from 'node:net'

const SIZE = 100_000_000

if (process.send) {
  const content = new Uint8Array(SIZE).fill(1)
  const server = createServer(socket => {
    socket.on('data', () => socket.write(content))
    socket.on('close', () => process.exit(0))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
} else {
  const child = fork(process.argv[1])
  const port = await new Promise(resolve => child.once('message', resolve))
  const socket = connect(port, '127.0.0.1')
  await new Promise(resolve => socket.once('connect', resolve))
  const values = []
  for (let round = 0; round < 3; round++) {
    const into = new Uint8Array(new SharedArrayBuffer(SIZE))
    const start = performance.now()
    let filled = 0
    socket.write('go')
    await new Promise(resolve => {
      socket.on('data', chunk => {
        into.set(chunk, filled)
        filled += chunk.length
        if (filled < SIZE) return
        socket.removeAllListeners('data')
        resolve()
      })
    })
    values.push(performance.now() - start)
  }
  socket.destroy()
  values.sort((a, b) => a - b)
  console.log(JSON.stringify({ value: values[1] }))
}
