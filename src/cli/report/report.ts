import { resolve } from 'node:path'
import { writeReport } from '../../report/dashboard/report-file.ts'
import { findRun } from '../../report/journal/runs.ts'
import { remark } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { checkTarget } from '../targets.ts'

/** `millrace report`: one file with all that the page shows. */
export async function execute(given: Given): Promise<void> {
  const run = await findRun(process.cwd(), given.operands[0] ?? 'last')
  const path = resolve(valueOf(given, 'output') ?? `${run.name}.html`)
  checkTarget('--output', path)
  await writeReport(run.journal, path)
  remark(`  report       ${path}`)
}
