import { writeCrate } from '../../report/export/crate.ts'
import { findRun } from '../../report/journal/runs.ts'
import { eventsOf } from '../inspect/events-of.ts'
import { remark } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** `millrace crate`: provenance for those who publish what a run made. */
export async function execute(given: Given): Promise<void> {
  const run = await findRun(process.cwd(), given.operands[0] ?? 'last')
  const path = await writeCrate(eventsOf(run), {
    folder: valueOf(given, 'output'),
    license: valueOf(given, 'license'),
  })
  remark(`  crate        ${path}`)
}
