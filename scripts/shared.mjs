// What `npm start`, `npm test` and `npm run bench` have in common: a fresh clone with nothing installed
// must work, so each of them first makes sure that dependencies and the build are there.
import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = join(dirname(fileURLToPath(import.meta.url)), '..')

/** Runs a program with our terminal; ends this process with its exit code when it fails. */
export function run(program, args, options = {}) {
  const result = spawnSync(program, args, { cwd: root, stdio: 'inherit', ...options })
  if (result.error) {
    console.error(`cannot start ${program}: ${result.error.message}`)
    process.exit(1)
  }
  if (result.status !== 0) process.exit(result.status ?? 1)
}

/** The path of a tool's script inside node_modules, to run with this very node. */
export const tool = path => join(root, 'node_modules', path)

export function ensureInstalled() {
  const folder = join(root, 'node_modules')
  // Shared with another checkout: what is in there is not ours to change.
  if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink()) return
  const mark = join(root, 'node_modules', '.package-lock.json')
  const lock = join(root, 'package-lock.json')
  if (existsSync(mark) && statSync(mark).mtimeMs >= statSync(lock).mtimeMs) return
  console.error('installing dependencies …')
  // Without scripts: ours (prepare) would build, and those of our dependencies are not needed.
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'])
}

export function build() {
  run(process.execPath, [join(root, 'scripts', 'build.mjs')])
}

export const packageJson = () => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
