import { fileURLToPath } from 'node:url'
import { lastLine } from '../run-program.ts'

/** By its address: the program is started in an empty folder, where `tsx` would not be found. */
const TSX = ['--import', import.meta.resolve('tsx')]

/** Runs a program of examples/ with settings from the environment, and gives the object that it prints last. */
export async function runExample<T>(name: string, env: Readonly<Record<string, string>>): Promise<T> {
  const path = fileURLToPath(new URL(`../../examples/${name}`, import.meta.url))
  const printed = await lastLine(process.execPath, [...TSX, path], { MILLRACE_JOURNAL: '0', ...env })
  return JSON.parse(printed) as T
}

export const secondsOf = (name: string, env: Readonly<Record<string, string>>) => async (): Promise<number> =>
  (await runExample<{ seconds: number }>(name, env)).seconds
