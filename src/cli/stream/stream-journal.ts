import type { Observer } from '../../core/events.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { newRunName } from '../../report/journal/run-names.ts'
import { runPaths } from '../../report/journal/run-paths.ts'
import { runNames } from '../../report/journal/runs.ts'
import { createJournal } from '../../report/journal/writer.ts'
import { startDashboard } from '../../runtime/dashboard.ts'
import { packageVersion } from '../../runtime/version.ts'
import type { StreamIo, StreamRunFacts } from '../../stream/index.ts'

export interface KeptJournal {
  readonly observed: { observer: Observer; facts: StreamRunFacts }
  close(): Promise<void>
}

/** A page is made from a journal: a run of streams keeps one where a page is asked for. */
export async function keepJournal(
  config: string,
  port: string | undefined,
  io: StreamIo,
): Promise<KeptJournal> {
  const run = newRunName(await runNames(process.cwd()), Math.random)
  const { journal: path } = runPaths(process.cwd(), run)
  const journal = createJournal(path)
  const order = { journal: path, ...(port === undefined ? {} : { port: Number(port) }) }
  const dashboard = startDashboard(order, lines => io.err(lines.map(line => `${line}\n`).join('')))
  const again = ['millrace', 'stream', 'run', config].map(shellQuote).join(' ')
  return {
    observed: {
      observer: journal.observe,
      facts: { run, version: packageVersion(), program: config, again },
    },
    async close() {
      await journal.close()
      dashboard.end()
    },
  }
}
