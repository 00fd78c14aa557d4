/**
 * What a launcher runs in place of `ssh HOST COMMAND`: it asks the run for the command on the node with this name, and lasts as
 * long as the command does.
 */
import { createConnection } from 'node:net'
import { FrameReader, frame } from './frames.ts'
import type { ToRank } from './frames.ts'

const [host = '', ...words] = process.argv.slice(2)
const socket = createConnection(process.env['MILLRACE_START'] ?? '')
const frames = new FrameReader<ToRank>(header => {
  if (header.type === 'over') process.exit(header.code)
})
socket.on('data', chunk => frames.take(chunk as Buffer))
socket.on('error', () => process.exit(1))
socket.on('close', () => process.exit(1))
socket.write(frame({ type: 'start', host, line: words.join(' ') }))
