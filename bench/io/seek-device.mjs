// A device in a process of its own, for throughput that falls with concurrency as that of disks and busy shared
// file systems does. It really receives the bytes, over a Unix socket, and serves them at wall-clock speed:
//
//   one head serves all streams in turn, a block of 64 KiB each, at 100 MB/s;
//   a change to another stream costs a seek of 0.05 ms per stream beyond the first;
//   opening a stream takes 4 ms, during which the head serves others.
//
// A request is a header of 4 bytes with the length, then the data. The answer is the MD5 of what was received.
// A line "seek MILLISECONDS" on stdin changes the penalty.
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const [path, bandwidth = '100', seek = '0.05'] = process.argv.slice(2)
const BLOCK = 65_536
const OPEN = 4
const rate = Number(bandwidth) * 1e3
let penalty = Number(seek)

const streams = []
let last = null
let busyUntil = 0

createInterface({ input: process.stdin }).on('line', line => {
  const [word, value] = line.split(' ')
  if (word === 'seek') penalty = Number(value)
})
process.stdin.on('end', () => process.exit(0))

const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** The head: serves a block of the next stream that has one; sleeps only when it is ahead of the clock. */
async function serve() {
  for (;;) {
    const stream = streams.shift()
    if (!stream) {
      await wait(0.5)
      continue
    }
    const now = performance.now()
    const bytes = Math.min(BLOCK, stream.left)
    const change = last !== null && last !== stream ? penalty * streams.length : 0
    busyUntil = Math.max(busyUntil, now) + bytes / rate + change
    last = stream
    stream.left -= bytes
    if (stream.left > 0) streams.push(stream)
    else stream.done(busyUntil)
    if (busyUntil - now > 1.5) await wait(busyUntil - now - 0.5)
  }
}

createServer(socket => {
  const hash = createHash('md5')
  let expected = -1
  let received = 0
  socket.on('error', () => undefined)
  socket.on('data', data => {
    let rest = data
    if (expected < 0) {
      expected = data.readUInt32LE(0)
      rest = data.subarray(4)
    }
    hash.update(rest)
    received += rest.length
    if (received < expected) return
    const done = at => setTimeout(() => socket.end(hash.digest()), Math.max(0, at - performance.now()))
    setTimeout(() => streams.push({ left: expected, done }), OPEN)
  })
}).listen(path, () => console.log('ready'))

void serve()
