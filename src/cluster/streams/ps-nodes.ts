import { execFile } from 'node:child_process'
import type { StreamIo } from '../../stream/run/screen.ts'
import { commandOn } from '../launch/command-on.ts'
import type { NodeSpec } from '../launch/node-spec.ts'

/** Milliseconds for the answer of a node. */
const PATIENCE = 60_000
const LARGEST = 256 << 20

/** What `stream ps` says on each node, behind the name of the node. Nodes of this machine are asked once. */
export async function streamPsOnNodes(
  specs: readonly NodeSpec[],
  words: readonly string[],
  io: StreamIo,
): Promise<number> {
  const asked = specs.filter(
    ({ by }, i) => by !== 'local' || specs.findIndex(one => one.by === 'local') === i,
  )
  const answers = await Promise.all(asked.map(spec => ask(spec, words)))
  for (const [i, { code, out, err }] of answers.entries()) {
    const name = asked[i]?.by === 'local' ? 'this machine' : (asked[i]?.name ?? '?')
    const reason = err.trim()
    io.out(`${name}:\n${indented(out)}`)
    if (code !== 0 || reason !== '') io.err(`${name}: ${reason || `millrace ended with ${code}`}\n`)
  }
  return answers.some(({ code }) => code !== 0) ? 1 : 0
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map(line => (line === '' ? '' : `  ${line}`))
    .join('\n')

function ask(spec: NodeSpec, words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const { program, args } = commandOn(spec, ['stream', 'ps', ...words])
  return new Promise(resolve => {
    execFile(program, args, { timeout: PATIENCE, maxBuffer: LARGEST }, (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, out, err: err || (error && code === 1 && !out ? error.message : '') })
    })
  })
}
