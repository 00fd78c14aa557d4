// Runs test files with Node's test runner, watched.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { root } from '../shared.mjs'
import { Watcher } from './watcher.mjs'

/**
 * The files in which a test failed, the files that left processes behind, and why the tests could not be run, if so. Limits
 * are in milliseconds: of a test or hook, of a file, and for what a file started to end after it.
 */
export async function runFiles(node, names, { limits, atOnce, environment = process.env, tell }) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-failed-'))
  const list = join(folder, 'failed')
  const options = [
    '--import=tsx',
    '--import=./test/seed.mjs',
    '--test',
    `--test-concurrency=${atOnce}`,
    // A test that hangs is named and ended sooner, by the watcher.
    `--test-timeout=${limits.file + 60_000}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    '--test-reporter=./scripts/failed-files.mjs',
    `--test-reporter-destination=${list}`,
  ]
  const watcher = new Watcher(limits, tell)
  const { status, error } = await new Promise(resolve => {
    const child = spawn(node, [...options, ...names], {
      cwd: root,
      stdio: ['ignore', tell === undefined ? 'inherit' : 'ignore', 'inherit'],
      env: { ...environment, ...watcher.environment },
    })
    child.on('error', failure => resolve({ error: failure }))
    child.on('close', code => resolve({ status: code }))
  })
  await watcher.close()
  const text = existsSync(list) ? readFileSync(list, 'utf8') : ''
  rmSync(folder, { recursive: true })
  const failed = [...new Set(text.split('\n').filter(Boolean))].map(name => relative(root, name))
  const problem = status !== 0 && failed.length === 0 ? (error?.message ?? `exit code ${status}`) : null
  return { failed, left: watcher.left, problem }
}
