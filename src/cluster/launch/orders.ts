import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { shellQuote } from '../../general/shell-quote.ts'

/** What agents that are started through a queue read and write: a folder for this user alone. */
export const ordersFolder = (run: string): string => resolve('.millrace', `agents-${run}`)

export function makeOrdersFolder(run: string): string {
  const folder = ordersFolder(run)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Returns the path of the file. */
export function writeScript(script: string, node: number, run: string): string {
  const file = join(makeOrdersFolder(run), `${node}.sh`)
  writeFileSync(file, script, { mode: 0o600 })
  return file
}

export const removeOrders = (run: string): void => rmSync(ordersFolder(run), { recursive: true, force: true })

/**
 * `qrsh -l host={name} {agent}`: the agent is a script in a file, which the node has to see. Where the command passes its
 * standard input on, `{stdin}` is a shell that reads the script from there.
 */
export function commandLine(template: string, name: string, file: () => string): string {
  const hasPlace = template.includes('{agent}') || template.includes('{stdin}')
  const whole = hasPlace ? template : `${template} {agent}`
  return whole
    .replaceAll('{name}', () => shellQuote(name))
    .replaceAll('{stdin}', () => 'sh -s')
    .replaceAll('{agent}', () => `sh ${shellQuote(file())}`)
}
