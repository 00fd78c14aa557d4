import { addressLines } from '../../report/dashboard/address.ts'
import { Allowance } from '../../report/dashboard/allowance.ts'
import { DashboardServer } from '../../report/dashboard/server.ts'
import { findRun } from '../../report/journal/runs.ts'
import { printLines, remark } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** `millrace dashboard`: serves the page of a run until it is interrupted. */
export async function execute(given: Given): Promise<void> {
  const run = await findRun(process.cwd(), given.operands[0] ?? 'last')
  await serveUntilInterrupted(run.journal, given, new Allowance())
}

/** `allowance`: what it may cost a run that goes on meanwhile. */
export async function serveUntilInterrupted(
  journal: string,
  given: Given,
  allowance?: Allowance,
): Promise<void> {
  const port = valueOf(given, 'port')
  const host = valueOf(given, 'host')
  const server = new DashboardServer({
    journal,
    ...(allowance === undefined ? {} : { allowance }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(host === undefined ? {} : { host }),
  })
  printLines(addressLines(await server.listen()))
  remark('Ctrl-C ends it.')
  await new Promise<void>(resolve => {
    process.once('SIGINT', resolve)
    process.once('SIGTERM', resolve)
  })
  await server.close()
}
