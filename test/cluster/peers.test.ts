import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import { Incoming } from '../../src/cluster/transfer/incoming.ts'
import { blocksOf } from '../../src/cluster/transfer/blocks.ts'
import { Peers } from '../../src/cluster/transfer/peers.ts'

const SIZE = 5_000_001
const all: Peers[] = []
// Connections between agents keep no process alive.
const alive = setInterval(() => undefined, 1000)
after(() => {
  clearInterval(alive)
  for (const peers of all) peers.end()
})

async function makePeers(
  node: number,
  token: string,
  isHere: boolean,
): Promise<{ incoming: Incoming; peers: Peers }> {
  const incoming = new Incoming()
  const peers = new Peers({ token, node, incoming, isHere })
  await peers.listen()
  all.push(peers)
  return { incoming, peers }
}

const newToken = (): string => randomBytes(32).toString('hex')

function content(): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(SIZE)
  const bytes = new Uint8Array(buffer)
  for (let i = 0; i < SIZE; i++) bytes[i] = (i * 7) % 251
  return buffer
}

const isSame = (a: ArrayBufferLike | undefined, b: ArrayBufferLike): boolean =>
  a !== undefined && Buffer.compare(new Uint8Array(a), new Uint8Array(b)) === 0

for (const isHere of [true, false]) {
  const how = isHere ? 'sockets of one machine' : 'TLS'
  const skip = isHere && process.platform !== 'linux' ? 'such sockets are only on Linux' : false
  test(`agents get buffers from each other over ${how}`, { skip, timeout: 30_000 }, async () => {
    const token = newToken()
    const [one, two] = [await makePeers(1, token, isHere), await makePeers(2, token, isHere)]
    const buffer = content()
    one.incoming.put(11, buffer)
    const addresses = one.peers.addresses
    const both = [two.peers.fetch(1, addresses, 11, 22), two.peers.fetch(1, addresses, 11, 24)]
    assert.deepEqual(await Promise.all(both), [true, true])
    assert.ok(isSame(two.incoming.get(22), buffer))
    assert.ok(isSame(two.incoming.get(24), buffer))
    assert.ok(two.incoming.get(22) instanceof SharedArrayBuffer)
    // An address may lead to another node.
    assert.equal(await two.peers.fetch(7, addresses, 11, 28), false)
  })

  test(`strangers get nothing over ${how}`, { skip, timeout: 30_000 }, async () => {
    const one = await makePeers(1, newToken(), isHere)
    const stranger = await makePeers(2, newToken(), isHere)
    one.incoming.put(11, content())
    assert.equal(await stranger.peers.fetch(1, one.peers.addresses, 11, 22), false)
    assert.equal(stranger.incoming.get(22), undefined)
  })
}

const skip = process.platform === 'linux' ? false : 'such sockets are only on Linux'

test(
  'however often it waits for room, a connection has no more listeners',
  { skip, timeout: 30_000 },
  async () => {
    const token = newToken()
    const [one, two] = [await makePeers(1, token, true), await makePeers(2, token, true)]
    const warnings: string[] = []
    const listener = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', listener)
    one.incoming.put(11, content())
    for (let number = 0; number < 12; number++) {
      assert.ok(await two.peers.fetch(1, one.peers.addresses, 11, 100 + number))
    }
    await new Promise(resolve => setImmediate(resolve))
    process.off('warning', listener)
    assert.deepEqual(warnings, [])
  },
)

test('a reader passes on what has arrived so far', { skip, timeout: 30_000 }, async () => {
  const token = newToken()
  const chain = await Promise.all([1, 2, 3].map(node => makePeers(node, token, true)))
  const [first, second, third] = chain as [(typeof chain)[0], (typeof chain)[0], (typeof chain)[0]]
  const buffer = content()
  const blocks = [...blocksOf({ number: 11, buffer, offset: 0, length: SIZE })]
  const feed = (count: number): void => {
    for (const pieces of blocks.splice(0, count)) for (const piece of pieces) first.incoming.push(piece)
  }
  feed(2)
  const toSecond = second.peers.fetch(1, first.peers.addresses, 11, 22)
  const toThird = third.peers.fetch(2, second.peers.addresses, 22, 33)
  // The third has the beginning although the first does not have the end.
  const begun = third.incoming.blocksOf(33, 0)
  assert.ok(!(await begun.next()).done)
  assert.equal(first.incoming.get(11), undefined)
  feed(Infinity)
  assert.deepEqual(await Promise.all([toSecond, toThird]), [true, true])
  assert.ok(isSame(second.incoming.get(22), buffer))
  assert.ok(isSame(third.incoming.get(33), buffer))
})

test('a source that ends, or says nothing, is given up', { skip, timeout: 30_000 }, async () => {
  const token = newToken()
  const [one, two] = [await makePeers(1, token, true), await makePeers(2, token, true)]
  one.incoming.whenHere([11], () => undefined)
  const fetched = two.peers.fetch(1, one.peers.addresses, 11, 22)
  await new Promise(resolve => setImmediate(resolve))
  one.peers.end()
  assert.equal(await fetched, false)
  const silent = createServer(() => undefined)
  after(() => silent.close())
  const address = `\0millrace-test-${randomBytes(8).toString('hex')}`
  await new Promise<void>(resolve => silent.listen({ path: address }, resolve))
  const stuck = connect(address)
  after(() => stuck.destroy())
  assert.equal(await two.peers.fetch(3, [address], 11, 24), false)
})
