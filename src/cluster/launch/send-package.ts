import type { Socket } from 'node:net'
import { packPackage } from './package-parcel.ts'

/** A line from a machine without Millrace is not longer; bytes. */
const LONGEST = 4096

/**
 * Answers a machine without Millrace, which has called by bin/boot.cjs: says which package it is to have, and sends it if it
 * does not have it yet. `cannot`: the machine cannot use it, and says why.
 */
export function sendPackage(socket: Socket, rest: Buffer, cannot: (why: string) => void): void {
  let text = ''
  const take = (chunk: Buffer): void => {
    text += chunk.toString()
    const end = text.indexOf('\n')
    if (end < 0) return text.length > LONGEST ? void socket.destroy() : undefined
    const line = text.slice(0, end)
    text = text.slice(end + 1)
    if (line === 'send') void packPackage().then(({ content }) => socket.end(content))
    else {
      socket.end()
      if (line.startsWith('cannot ')) cannot(line.slice('cannot '.length))
    }
  }
  packPackage().then(
    ({ hash, content }) => {
      socket.write(`${JSON.stringify({ hash, bytes: content.length, node: process.versions.node })}\n`)
      socket.on('data', take)
      if (rest.length > 0) take(rest)
    },
    (error: Error) => {
      socket.destroy()
      cannot(`the package could not be read: ${error.message}`)
    },
  )
}
