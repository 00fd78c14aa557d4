import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { TlsOptions, ConnectionOptions } from 'node:tls'

/** One per run: a caller without it gets nothing. */
export interface Secret {
  readonly token: string
}

export const newSecret = (): Secret => ({ token: randomBytes(32).toString('hex') })

export function isToken({ token }: Secret, given: unknown): boolean {
  if (typeof given !== 'string' || given.length !== token.length) return false
  return timingSafeEqual(Buffer.from(given), Buffer.from(token))
}

const IDENTITY = 'millrace'
/** In TLS 1.3 a key that both sides know goes with this hash only. */
const CIPHERS = 'TLS_AES_128_GCM_SHA256'

/** TLS with a key that both sides know: no certificates. A wrong key is refused in the handshake. */
export function serverTls({ token }: Secret): TlsOptions {
  return {
    ciphers: CIPHERS,
    minVersion: 'TLSv1.3',
    pskIdentityHint: IDENTITY,
    pskCallback: (_socket, identity) => (identity === IDENTITY ? Buffer.from(token, 'hex') : null),
  } as TlsOptions
}

export function clientTls({ token }: Secret): ConnectionOptions {
  return {
    ciphers: CIPHERS,
    minVersion: 'TLSv1.3',
    pskCallback: () => ({ psk: Buffer.from(token, 'hex'), identity: IDENTITY }),
    // There are no certificates: the node that has the key is the one that is meant.
    checkServerIdentity: () => undefined,
  } as ConnectionOptions
}
