/**
 * The page of a run, in a process of its own: it reads the journal, so the run pays nothing for it. The run that started it
 * gets the address, and the process ends soon after that run.
 */
import { setPriority } from 'node:os'
import { Allowance } from './allowance.ts'
import type { ControlAnswer, ControlOrder } from './protocol.ts'
import { DashboardServer } from './server.ts'
import type { DashboardOptions, PageAddresses } from './server.ts'

export interface DashboardOrder extends Omit<DashboardOptions, 'controls' | 'allowance' | 'watched'> {
  /** Pages may act on the run. */
  control?: boolean
}

/** What this process tells the run. */
export type DashboardReply =
  | PageAddresses
  | { problem: string }
  | { id: number; order: ControlOrder }
  /** A page is open, or no page any more. */
  | { isWatched: boolean }

/** What the run answers to an order. */
export interface DashboardAnswer {
  id: number
  answer: ControlAnswer
}

/** Tasks go first; but where all CPUs are busy, a page must not wait for seconds. */
const NICE = 10
/** A program that computes without a pause hears of an order when it pauses; a page does not wait for it for ever. */
const ANSWER_TIMEOUT_MS = 10_000

async function serve({ control = false, ...options }: DashboardOrder): Promise<void> {
  try {
    setPriority(NICE)
  } catch {
    // It then shares the CPUs as others do.
  }
  const server = new DashboardServer({
    ...options,
    allowance: new Allowance(),
    watched: isWatched => reply({ isWatched }),
    ...(control ? { controls: passOn } : {}),
  })
  process.on('disconnect', () => {
    // The last events are in the journal before the run ends.
    void server.close().finally(() => process.exit(0))
  })
  reply(await server.listen())
}

const waiting = new Map<number, (answer: ControlAnswer) => void>()
let orders = 0

function passOn(order: ControlOrder): Promise<ControlAnswer> {
  const id = ++orders
  return new Promise(resolve => {
    const end = (answer: ControlAnswer): void => {
      clearTimeout(timer)
      waiting.delete(id)
      resolve(answer)
    }
    const timer = setTimeout(
      () => end({ problem: 'The program is busy and has not answered yet. It will do it when it pauses.' }),
      ANSWER_TIMEOUT_MS,
    )
    waiting.set(id, end)
    reply({ id, order })
  })
}

process.on('message', message => {
  const { id, answer } = message as DashboardAnswer
  waiting.get(id)?.(answer)
})

function reply(answer: DashboardReply): void {
  if (process.connected) process.send?.(answer)
}

// Ctrl-C goes to all processes of a terminal; this one ends with the run.
process.on('SIGINT', () => {})
serve(JSON.parse(process.argv[2] ?? '{}') as DashboardOrder).catch((error: unknown) => {
  reply({ problem: error instanceof Error ? error.message : String(error) })
  process.exitCode = 1
  process.disconnect?.()
})
