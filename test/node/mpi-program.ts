import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** A folder in which programs find Millrace. */
export function programFolder(name: string): string {
  mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
  const folder = mkdtempSync(join(root, 'test', 'tmp', `${name}-`))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'millrace'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const has = (name: string): boolean => existsSync(`/usr/bin/${name}`)

/** Why tests with this MPI are skipped, or false. */
export const without = (kind: string): string | false =>
  has(`mpirun.${kind}`) && has(`mpicc.${kind}`) ? false : `needs ${kind}`

/** Writes the program, runs it by this MPI, and returns what it prints. */
export function runProgram(
  folder: string,
  name: string,
  program: string,
  mpi: string,
  options: readonly string[] = ['--cpus', '2'],
): string {
  writeFileSync(join(folder, name), program)
  const env = { ...process.env, MILLRACE_MPICC: `mpicc.${mpi}`, MILLRACE_MPIRUN: `mpirun.${mpi}` }
  const words = [join(root, 'bin', 'millrace.js'), 'run', name, ...options, '--progress', 'none']
  const { stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    env,
    encoding: 'utf8',
    timeout: 100_000,
  })
  assert.notEqual(stdout, '', stderr)
  return stdout
}
