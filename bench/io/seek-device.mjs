// A device in a process of its own, for throughput that falls with concurrency as that of disks and busy shared
// file systems does. It really receives the bytes, over a Unix socket, and serves them at wall-clock speed:
//
//   opening a stream takes 12 ms, during which the head serves others;
//   one head serves all open streams in turn, a block of 64 KiB each, at 50 MB/s unless told;
//   a change to another stream costs a seek of 0.06 ms per stream that waits.
//
// So one stream alone waits for its opening most of the time, and many wait for seeks. What the head does is counted on
// its own clock: if this process is woken up late, it catches up, so that the device is not slower on a busy machine.
//
// A request is a header of 4 bytes with the length, then the data; the answer is the MD5 of what was received. A request
// of length 0 changes the device: the line "seek MILLISECONDS" or "rate MEGABYTES" follows; the answer is "done".
import { createHash } from 'node:crypto'
import { createServer } from 'node:net'

const [path, rate = '50'] = process.argv.slice(2)
const BLOCK = 65_536
const OPEN = 12
const settings = { rate: Number(rate), seek: 0.06 }

/** Streams that have blocks for the head, in the order in which it serves them. */
const streams = []
let last = null
let busyUntil = 0
let isServing = false

const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const later = (at, action) => setTimeout(() => action(), Math.max(0, Math.round(at - performance.now())))

async function serve() {
  isServing = true
  for (let stream = streams.shift(); stream; stream = streams.shift()) {
    const bytes = Math.min(BLOCK, stream.left)
    const seek = last === stream ? 0 : settings.seek * streams.length
    busyUntil = Math.max(busyUntil, stream.since) + bytes / (settings.rate * 1e3) + seek
    last = stream
    stream.left -= bytes
    stream.since = busyUntil
    if (stream.left > 0) streams.push(stream)
    else later(busyUntil, stream.done)
    const ahead = busyUntil - performance.now()
    if (ahead > 1.5) await wait(ahead - 0.5)
  }
  isServing = false
}

function enqueue(stream) {
  streams.push(stream)
  if (!isServing) void serve()
}

function change(line) {
  const [name, value] = line.trim().split(' ')
  if (name in settings) settings[name] = Number(value)
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
    if (expected === 0) {
      change(rest.toString())
      socket.end('done')
      return
    }
    hash.update(rest)
    received += rest.length
    if (received < expected) return
    const opened = performance.now() + OPEN
    const stream = { left: expected, since: opened, done: () => socket.end(hash.digest()) }
    later(opened, () => enqueue(stream))
  })
}).listen(path, () => console.log('ready'))

process.stdin.on('end', () => process.exit(0)).resume()
