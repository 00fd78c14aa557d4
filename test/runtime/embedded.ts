import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { configure } from 'millrace'

/**
 * The test process is itself a coordinator: tests call tasks of the fixture modules directly, without main,
 * so that a situation costs milliseconds and not the start of a process.
 */
configure({ journal: false, progress: 'none', cpus: 2 })

/** A folder that is gone after the tests of the file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What the promise is rejected with; fails when it is not. */
export async function rejection<E = MillraceFields>(promise: PromiseLike<unknown>): Promise<E> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error as E
  }
  throw new Error(`expected a rejection and got ${String(value)}`)
}

/** What the call throws; fails when it does not. */
export function thrown<E = MillraceFields>(call: () => unknown): E {
  let value: unknown
  try {
    value = call()
  } catch (error) {
    return error as E
  }
  throw new Error(`expected an exception and got ${String(value)}`)
}

export interface MillraceFields extends Error {
  code: string
  shortMessage: string
  hint: string
  task: string
  attempt: number
  timedOut: boolean
  exitCode: number | null
  signal: string | null
  cause: MillraceFields
}

/** Resolves when the condition holds. The limit is a watchdog, not part of what is tested. */
export async function until(condition: () => boolean | Promise<boolean>, what: string, limit = 60_000) {
  const end = Date.now() + limit
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`after ${limit} ms: ${what} has not happened`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}
