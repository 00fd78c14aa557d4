import { CHECKS } from './doctor-checks.ts'
import type { Finding } from './doctor-checks.ts'
import { paintFor, printJson, printLines } from '../output.ts'
import { measureDevices } from './doctor-measure.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** `millrace doctor` */
export async function execute(given: Given): Promise<void> {
  const { flags } = given
  const findings: { check: string; finding: Finding }[] = []
  for (const [check, find] of Object.entries(CHECKS)) {
    findings.push({ check, finding: await find().catch(asFinding) })
  }
  if (flags.get('measure')) findings.push(...(await measureDevices(valueOf(given, 'machine'))))
  const nodes = valueOf(given, 'nodes')
  if (nodes !== undefined) findings.push(...(await (await import('./doctor-nodes.ts')).checkCluster(nodes)))
  if (flags.get('json')) await printJson(findings.map(({ check, finding }) => ({ check, ...finding })))
  else printLines(findings.flatMap(({ check, finding }) => findingLines(check, finding)))
  if (findings.some(({ finding }) => finding.state === 'fail')) process.exitCode = 1
}

function findingLines(check: string, { state, found, todo }: Finding): string[] {
  const paint = paintFor(process.stdout)
  const word = { ok: paint.good, warn: paint.warn, fail: paint.bad }[state](state.padEnd(4))
  const lines = [`${word}  ${check.padEnd(12)} ${found}`]
  if (todo !== undefined) lines.push(`${' '.repeat(19)}${todo}`)
  return lines
}

/** A check that cannot be made says nothing bad about the machine. */
function asFinding(error: unknown): Finding {
  return {
    state: 'warn',
    found: `could not be checked: ${error instanceof Error ? error.message : String(error)}`,
  }
}
