/**
 * The page of a run, in a process of its own: it reads the journal, so the run pays nothing for it. The run that started it
 * gets the address, and the process ends soon after that run.
 */
import { setPriority } from 'node:os'
import { DashboardServer } from './server.ts'
import type { DashboardOptions } from './server.ts'

export type DashboardOrder = DashboardOptions

export type DashboardReply = { url: string } | { problem: string }

/** Tasks go first; but where all CPUs are busy, a page must not wait for seconds. */
const NICE = 10

async function serve(order: DashboardOrder): Promise<void> {
  try {
    setPriority(NICE)
  } catch {
    // It then shares the CPUs as others do.
  }
  const server = new DashboardServer(order)
  process.on('disconnect', () => {
    // The last events are in the journal before the run ends.
    void server.close().finally(() => process.exit(0))
  })
  reply({ url: await server.listen() })
}

function reply(answer: DashboardReply): void {
  process.send?.(answer)
}

// Ctrl-C goes to all processes of a terminal; this one ends with the run.
process.on('SIGINT', () => {})
serve(JSON.parse(process.argv[2] ?? '{}') as DashboardOrder).catch((error: unknown) => {
  reply({ problem: error instanceof Error ? error.message : String(error) })
  process.exitCode = 1
  process.disconnect?.()
})
