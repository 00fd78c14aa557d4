import { fileURLToPath } from 'node:url'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { LeaseTimes } from '../lease/lease.ts'

/** The command of this installation, which agents are started with. Modules are joined in dist/, or lie where they are in src/. */
export function millraceCommand(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (;;) {
    const path = join(folder, 'bin', 'millrace.js')
    if (existsSync(path)) return path
    const above = dirname(folder)
    if (above === folder) return 'millrace'
    folder = above
  }
}

/** What an agent reads on its standard input, in one line: nothing secret is among the words that others can see. */
export interface AgentOrders {
  readonly addresses: readonly string[]
  readonly token: string
  readonly node: number
  readonly cpus: number | null
  /** It is on the machine of the coordinator, like the others that are. */
  readonly isHere: boolean
  /** Where leases are renewed. */
  readonly leases: readonly string[]
  /** It is one of several agents of a job, each with the number after the one before; it prints through the coordinator. */
  readonly isBlock?: boolean
  /** How long an agent and the coordinator wait for each other. */
  readonly times: LeaseTimes
  /** The addresses are files on the agent's machine that are not needed after its call. */
  readonly removesSocket?: boolean
}
