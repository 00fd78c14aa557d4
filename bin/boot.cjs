// Starts an agent on a machine without Millrace: reads its orders from standard input, calls the coordinator for the package,
// and keeps it for later. It is given to `node -e`, and uses no call of node:fs that needs a thread: the pool of threads gets
// its size from the command that comes after.
'use strict'
const { createHash, randomBytes } = require('node:crypto')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const { dirname, join } = require('node:path')
const { Readable } = require('node:stream')
const tls = require('node:tls')
const { serialize } = require('node:v8')

const HEADER = 32
const [FILE, FOLDER, LINK, END] = [1, 2, 3, 4]
const HELLO = 64
/** For one address; milliseconds. */
const PATIENCE = 10_000
/** What was not used for so long goes; milliseconds. */
const OLDEST = 30 * 24 * 3600 * 1000

/** Reads lines and bytes of a stream as they are asked for. */
class Input {
  #bytes = Buffer.alloc(0)
  #wake = null
  #isOver = false

  constructor(stream) {
    stream.on('data', this.take)
    for (const event of ['end', 'close']) stream.on(event, this.over)
  }

  take = chunk => {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    this.#wake?.()
  }

  over = () => {
    this.#isOver = true
    this.#wake?.()
  }

  async #until(isEnough) {
    while (!isEnough()) {
      if (this.#isOver) throw new Error('the coordinator is gone')
      await new Promise(resolve => (this.#wake = resolve))
    }
  }

  async line() {
    await this.#until(() => this.#bytes.includes(10))
    const end = this.#bytes.indexOf(10)
    return this.#cut(end + 1).toString()
  }

  async bytes(count) {
    const parts = []
    for (let left = count; left > 0;) {
      await this.#until(() => this.#bytes.length > 0)
      const part = this.#cut(Math.min(left, this.#bytes.length))
      parts.push(part)
      left -= part.length
    }
    return Buffer.concat(parts)
  }

  #cut(length) {
    const part = this.#bytes.subarray(0, length)
    this.#bytes = this.#bytes.subarray(length)
    return part
  }
}

/** See src/cluster/link/secret.ts. */
const keyOf = token => ({
  ciphers: 'TLS_AES_128_GCM_SHA256',
  minVersion: 'TLSv1.3',
  pskCallback: () => ({ psk: Buffer.from(token, 'hex'), identity: 'millrace' }),
  checkServerIdentity: () => undefined,
})

function open(address, token) {
  return new Promise((resolve, reject) => {
    const [, host, port] = /^([^/]*):(\d+)$/.exec(address) ?? []
    const isPath = host === undefined
    const socket = isPath ? net.connect(address) : tls.connect({ host, port: Number(port), ...keyOf(token) })
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error('no answer')))
    socket.once('error', reject)
    socket.once(isPath ? 'connect' : 'secureConnect', () => {
      socket.setTimeout(0)
      socket.off('error', reject)
      socket.on('error', () => undefined)
      resolve(socket)
    })
  })
}

/** Calls the coordinator for the package; see src/cluster/coordinator/listener.ts for the form. */
async function call({ addresses, token, node, isBlock }) {
  const failures = []
  for (const address of addresses) {
    try {
      const socket = await open(address, token)
      const number = node + (isBlock ? Number(process.env.SLURM_PROCID ?? 0) : 0)
      const hello = serialize({ channel: 'package', token, node: number, version: '' })
      const header = Buffer.alloc(5)
      header.writeUInt32LE(hello.length)
      header[4] = HELLO
      socket.write(Buffer.concat([header, hello]))
      return socket
    } catch (error) {
      failures.push(`${address}: ${error.message}`)
    }
  }
  throw new Error(`${os.hostname()} cannot reach the coordinator: ${failures.join('; ')}`)
}

/** A folder that only this user can write to; one that goes with this process where there is no home. */
function cacheFolder() {
  const base = process.env.XDG_CACHE_HOME || join(os.homedir(), '.cache')
  const folder = join(base, 'millrace', 'packages')
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { uid, mode } = fs.lstatSync(folder)
    if (uid === process.getuid() && (mode & 0o022) === 0) return folder
  } catch {
    // There is no home, or it is full or read-only.
  }
  const own = fs.mkdtempSync(join(os.tmpdir(), 'millrace-package-'))
  process.on('exit', () => fs.rmSync(own, { recursive: true, force: true }))
  return own
}

/** Names and sizes of all that is there. */
function summaryOf(folder, name = '', hash = createHash('sha256')) {
  for (const entry of fs.readdirSync(join(folder, name), { withFileTypes: true }).sort(byName)) {
    const inner = join(name, entry.name)
    if (inner === '.complete') continue
    hash.update(`${inner}\0${entry.isFile() ? fs.lstatSync(join(folder, inner)).size : ''}\0`)
    if (entry.isDirectory()) summaryOf(folder, inner, hash)
  }
  return name === '' ? hash.digest('hex') : ''
}

const byName = (a, b) => (a.name < b.name ? -1 : 1)

function isWhole(folder) {
  try {
    const marker = join(folder, '.complete')
    if (fs.readFileSync(marker, 'utf8') !== summaryOf(folder)) return false
    fs.utimesSync(marker, new Date(), new Date())
    return true
  } catch {
    return false
  }
}

/** See src/cluster/files/tree.ts for the form. */
function unpack(bytes, to) {
  for (let at = 0; at < bytes.length;) {
    const type = bytes.readUInt32LE(at)
    const name = bytes.toString('utf8', at + HEADER, at + HEADER + bytes.readUInt32LE(at + 4))
    const mode = bytes.readUInt32LE(at + 8)
    const size = bytes.readDoubleLE(at + 24)
    at += HEADER + Buffer.byteLength(name)
    const content = bytes.subarray(at, at + size)
    at += size
    const path = join(to, name)
    if (type === END) return
    if (name.split('/').includes('..')) throw new Error(`a name leads out of the folder: ${name}`)
    fs.mkdirSync(type === FOLDER ? path : dirname(path), { recursive: true })
    if (type === FILE) fs.writeFileSync(path, content, { mode })
    else if (type === LINK) fs.symlinkSync(content.toString(), path)
  }
  throw new Error('the package was cut off')
}

function prune(cache, used) {
  for (const name of fs.readdirSync(cache)) {
    const path = join(cache, name)
    const marker = fs.lstatSync(join(path, '.complete'), { throwIfNoEntry: false })
    const usedAt = (marker ?? fs.lstatSync(path, { throwIfNoEntry: false }))?.mtimeMs ?? Date.now()
    if (name !== used && Date.now() - usedAt > OLDEST) fs.rmSync(path, { recursive: true, force: true })
  }
}

/** The folder of the package. */
async function fetch(socket) {
  const input = new Input(socket)
  const { hash, bytes, node } = JSON.parse(await input.line())
  const major = process.versions.node.split('.')[0]
  if (major !== node.split('.')[0])
    throw new Error(`${os.hostname()} has Node ${process.versions.node}, and the coordinator ${node}`)
  const cache = cacheFolder()
  const folder = join(cache, hash)
  if (!isWhole(folder)) {
    socket.write('send\n')
    const content = await input.bytes(bytes)
    if (createHash('sha256').update(content).digest('hex') !== hash)
      throw new Error('the package was damaged on its way')
    const aside = join(cache, `.new-${randomBytes(8).toString('hex')}`)
    try {
      unpack(content, aside)
      fs.writeFileSync(join(aside, '.complete'), summaryOf(aside))
      // Another agent may have been quicker.
      if (!isWhole(folder)) {
        fs.rmSync(folder, { recursive: true, force: true })
        try {
          fs.renameSync(aside, folder)
        } catch (error) {
          if (!isWhole(folder)) throw error
        }
      }
    } finally {
      fs.rmSync(aside, { recursive: true, force: true })
    }
    prune(cache, hash)
  }
  socket.end('have\n')
  return folder
}

async function boot() {
  const orders = fs.readFileSync(0, 'utf8')
  const socket = await call(JSON.parse(orders))
  let folder
  try {
    folder = await fetch(socket)
  } catch (error) {
    // Where its error output is not seen, the coordinator says why.
    await new Promise(resolve => socket.end(`cannot ${error.message.replaceAll('\n', ' ')}\n`, resolve))
    throw error
  }
  // The command that comes after reads them, too.
  Object.defineProperty(process, 'stdin', { value: Readable.from([Buffer.from(orders)]) })
  const command = join(folder, 'package', 'bin', 'millrace.js')
  process.argv = [process.execPath, command, 'agent']
  require(command)
}

boot().catch(error => {
  process.stderr.write(`millrace: ${error.message}\n`)
  process.exit(1)
})
