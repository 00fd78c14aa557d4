import { checkNodes } from '../../cluster/coordinator/check-nodes.ts'
import type { NodeCheck } from '../../cluster/coordinator/check-nodes.ts'
import { findNodes } from '../../cluster/launch/find-nodes.ts'
import { formatBytes, formatDuration } from '../../report/format.ts'
import { packageVersion } from '../../runtime/version.ts'
import { printJson, printLines } from '../output.ts'
import type { Given } from '../spec.ts'

/** `millrace nodes`: starts an agent on each node, and says what it found. */
export async function execute(given: Given): Promise<void> {
  const [nodes = 'here'] = given.operands
  const checks = await checkNodes(findNodes({ nodes, isLaunched: true }) ?? [], packageVersion())
  if (given.flags.get('json')) await printJson(checks.map(factsOf))
  else printLines(table(checks))
  if (checks.some(({ problem }) => problem !== null)) process.exitCode = 1
}

const factsOf = ({ name, by, problem, hello, view, startMs, roundTripMs, clockMs }: NodeCheck) => ({
  name,
  by,
  ...(problem === null ? {} : { problem }),
  ...(hello && {
    host: hello.host,
    cpus: hello.cpus,
    memory: hello.memory,
    node: hello.nodeVersion,
    version: hello.version,
  }),
  ...(view && { sharesFolder: view.seesFile, startMs, roundTripMs, clockMs }),
})

const HEAD = ['NODE', 'HOST', 'CPUS', 'MEMORY', 'STARTED IN', 'ROUND TRIP', 'FOLDER']

function table(checks: readonly NodeCheck[]): string[] {
  const rows = checks.map(({ name, problem, hello, view, startMs, roundTripMs }) =>
    hello && view
      ? [
          name,
          hello.host,
          String(hello.cpus),
          formatBytes(hello.memory),
          formatDuration(startMs),
          formatDuration(roundTripMs),
          view.seesFile ? 'shared' : 'not shared',
        ]
      : [name, problem ?? ''],
  )
  const full = [HEAD, ...rows.filter(row => row.length > 2)]
  const widths = HEAD.map((_, i) => Math.max(...full.map(row => row[i]?.length ?? 0)))
  return [HEAD, ...rows].map(row =>
    row
      .map((cell, i) => (row.length > 2 || i === 0 ? cell.padEnd(widths[i] ?? 0) : cell))
      .join('  ')
      .trimEnd(),
  )
}
