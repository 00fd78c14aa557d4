import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Secret } from './secret.ts'

/**
 * Sockets within one machine go without TLS, which takes time for each byte. Both sides show at the start that they know the
 * secret of the run, over numbers that each has chosen: the secret itself is not sent.
 */
const NONCE = 32

const proof = ({ token }: Secret, role: 'asks' | 'has', first: Buffer, second: Buffer): Buffer =>
  createHmac('sha256', Buffer.from(token, 'hex')).update(role).update(first).update(second).digest()

/** The side that is called. A caller that does not know the secret, or is silent for so long, is cut off. */
export function proveToCaller(
  socket: Socket,
  secret: Secret,
  milliseconds: number,
  known: (socket: Socket) => void,
): void {
  const challenge = randomBytes(NONCE)
  let bytes = Buffer.alloc(0)
  const giveUp = (): void => void socket.destroy()
  const hear = (chunk: Buffer): void => {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length < 2 * NONCE) return
    const [nonce, given] = [bytes.subarray(0, NONCE), bytes.subarray(NONCE, 2 * NONCE)]
    if (!timingSafeEqual(given, proof(secret, 'asks', challenge, nonce))) return giveUp()
    socket.off('data', hear).off('timeout', giveUp).pause()
    socket.setTimeout(0)
    socket.write(proof(secret, 'has', nonce, challenge))
    const rest = bytes.subarray(2 * NONCE)
    if (rest.length > 0) socket.unshift(rest)
    known(socket)
    socket.resume()
  }
  socket.on('data', hear).on('timeout', giveUp)
  socket.setTimeout(milliseconds)
  socket.write(challenge)
}

/** Bytes that are read at once. */
const READ = 1 << 20

/**
 * Calls a node of this machine. `hear` gets what comes, in memory that is valid during the call only. Fails when another one
 * answers that does not know the secret, or when nothing comes for so long.
 */
export function callHere(
  path: string,
  secret: Secret,
  milliseconds: number,
  hear: (bytes: Buffer) => void,
  begun: (socket: Socket) => void,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const nonce = randomBytes(NONCE)
    let bytes = Buffer.alloc(0)
    let challenge: Buffer | null = null
    let isProven = false
    const buffer = Buffer.allocUnsafeSlow(READ)
    const callback = (size: number): boolean => {
      if (isProven) hear(buffer.subarray(0, size))
      else prove(buffer.subarray(0, size))
      return true
    }
    const socket = connect({ path, onread: { buffer, callback } })
    const fail = (): void => {
      socket.destroy()
      reject(new Error('the node does not answer, or is of another run'))
    }
    const prove = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      if (bytes.length < NONCE) return
      const part = bytes.subarray(0, NONCE)
      bytes = bytes.subarray(NONCE)
      if (challenge === null) {
        challenge = part
        return void socket.write(Buffer.concat([nonce, proof(secret, 'asks', challenge, nonce)]))
      }
      if (!timingSafeEqual(part, proof(secret, 'has', nonce, challenge))) return fail()
      socket.off('close', fail).off('timeout', fail)
      socket.setTimeout(0)
      isProven = true
      resolve(socket)
    }
    socket.on('error', () => undefined)
    socket.on('close', fail).on('timeout', fail)
    socket.setTimeout(milliseconds)
    begun(socket)
  })
}
