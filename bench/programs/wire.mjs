// Bytes over TCP, as fast as the network takes them: `wire.mjs take PORT BYTES` and `wire.mjs send HOST PORT BYTES`.
import { connect, createServer } from 'node:net'

const [how, ...words] = process.argv.slice(2)
const numbers = words.map(Number)

if (how === 'take') {
  const [port, bytes] = numbers
  const server = createServer(socket => {
    let got = 0
    socket.on('data', chunk => {
      got += chunk.length
      if (got >= bytes) socket.end('.', () => process.exit(0))
    })
  })
  server.listen(port)
} else {
  const [, port, bytes] = numbers
  const chunk = Buffer.alloc(1 << 20, 7)
  const call = () => {
    const socket = connect(port, words[0])
    let left = bytes
    const fill = () => {
      while (left > 0) {
        const piece = left < chunk.length ? chunk.subarray(0, left) : chunk
        left -= piece.length
        if (!socket.write(piece)) return void socket.once('drain', fill)
      }
    }
    socket.on('connect', fill)
    socket.on('data', () => process.exit(0))
    socket.on('error', error => (error.code === 'ECONNREFUSED' ? setTimeout(call, 20) : process.exit(1)))
  }
  call()
}
