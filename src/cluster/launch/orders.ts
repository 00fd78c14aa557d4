import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { shellQuote } from '../../general/shell-quote.ts'
import { millraceCommand } from './agent-command.ts'
import type { AgentOrders } from './agent-command.ts'

/** Where orders of agents lie that are started through a queue: a folder for this user alone, which all nodes see. */
export const ordersFolder = (run: string): string => resolve('.millrace', `agents-${run}`)

/** Returns the path of the file. */
export function writeOrders(orders: AgentOrders, run: string): string {
  const folder = ordersFolder(run)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const file = join(folder, `${orders.node}.json`)
  writeFileSync(file, `${JSON.stringify(orders)}\n`, { mode: 0o600 })
  return file
}

export const removeOrders = (run: string): void => rmSync(ordersFolder(run), { recursive: true, force: true })

export const agentWords = (ordersFile: string): string[] => [
  process.execPath,
  millraceCommand(),
  'agent',
  '--orders',
  ordersFile,
]

/** `qsub -l host={name} {agent}`: the agent's command goes where {agent} is, or to the end. */
export function commandLine(template: string, name: string, agent: string): string {
  const withAgent = template.includes('{agent}') ? template : `${template} {agent}`
  return withAgent.replaceAll('{name}', shellQuote(name)).replaceAll('{agent}', () => agent)
}
