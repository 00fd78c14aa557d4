// `npm test [-- FILTER…]`: installs, builds, lints, checks types and runs the tests (those whose path
// contains a FILTER, when given; lint and types are then left out).
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build, ensureInstalled, root, run } from './shared.mjs'

const filters = process.argv.slice(2)

ensureInstalled()
build()
if (filters.length === 0) {
  run('npm', ['run', '--silent', 'lint'])
  run('npm', ['run', '--silent', 'types'])
}

const files = readdirSync(join(root, 'test'), { recursive: true })
  .filter(name => name.endsWith('.test.ts'))
  .map(name => relative(root, join(root, 'test', name)))
  .filter(name => filters.length === 0 || filters.some(filter => name.includes(filter)))
  .sort()

run(process.execPath, [
  '--import',
  'tsx',
  '--import',
  './test/seed.mjs',
  '--test',
  '--test-reporter=spec',
  '--test-concurrency=2',
  ...files,
])
