import { checkNodes } from '../../cluster/coordinator/check-nodes.ts'
import type { NodeCheck } from '../../cluster/coordinator/check-nodes.ts'
import { findNodes } from '../../cluster/launch/find-nodes.ts'
import { formatBytes, formatDuration, plural } from '../../report/format.ts'
import { packageVersion } from '../../runtime/version.ts'
import type { Finding } from './doctor-checks.ts'

/** A clock that is further away makes logs hard to read, and times of files wrong for make. Milliseconds. */
const CLOCKS_APART = 1000
/** A round trip that takes longer makes short tasks slow. Milliseconds. */
const FAR = 20

/** Whether the machines that `--nodes` names are fit for a run. */
export async function checkCluster(nodes: string): Promise<{ check: string; finding: Finding }[]> {
  const specs = findNodes({ nodes, isLaunched: true }) ?? []
  const checks = await checkNodes(specs, packageVersion())
  return checks.map(check => ({ check: check.name, finding: judgeNode(check) }))
}

export function judgeNode({ problem, by, hello, view, roundTripMs, clockMs }: NodeCheck): Finding {
  if (problem !== null || !hello || !view) {
    const ssh = 'Try it by hand: ssh -o BatchMode=yes HOST true'
    const found = `cannot be used: ${problem ?? 'it did not answer'}`
    return { state: 'fail', found, todo: by === 'ssh' ? ssh : 'See docs/cluster.md, What has to be there.' }
  }
  const has = `${hello.host}: ${plural(hello.cpus, 'CPU')}, ${formatBytes(hello.memory)}, Node ${hello.nodeVersion}`
  const found = `${has}, ${formatDuration(roundTripMs)} away`
  if (!view.hasFolder || !view.seesFile) {
    const todo =
      'Files of tasks will be sent there and back. In a folder that all nodes see at the same path they would not.'
    return { state: 'warn', found: `${found}; it does not see ${process.cwd()}`, todo }
  }
  if (!view.canWrite) {
    return {
      state: 'fail',
      found: `${found}; it cannot write to ${process.cwd()}`,
      todo: 'Look at the rights there.',
    }
  }
  if (Math.abs(clockMs) > CLOCKS_APART + roundTripMs) {
    const ahead = `${formatDuration(Math.abs(clockMs))} ${clockMs > 0 ? 'ahead' : 'behind'}`
    return {
      state: 'warn',
      found: `${found}; its clock is ${ahead}`,
      todo: 'Let both follow the same time (NTP).',
    }
  }
  return roundTripMs > FAR
    ? { state: 'warn', found, todo: 'Tasks of less than a few milliseconds do not pay there.' }
    : { state: 'ok', found }
}
