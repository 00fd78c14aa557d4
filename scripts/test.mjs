// `npm test [-- FILTER…]`: installs, builds, lints, checks types and runs the tests (those whose path
// contains a FILTER, when given; lint and types are then left out).
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build, ensureInstalled, root, run } from './shared.mjs'

const filters = process.argv.slice(2)

ensureInstalled()
build()
installPrograms()
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

/** Real programs that tests of examples use. Where they cannot be installed those tests skip themselves. */
function installPrograms() {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return
  const packages = {
    montage: 'mProjectPP',
    hmmer: 'hmmbuild',
    bwa: 'bwa',
    samtools: 'samtools',
    bcftools: 'bcftools',
  }
  const common = { make: 'make', 'ninja-build': 'ninja', git: 'git', sqlite3: 'sqlite3', zip: 'zip' }
  const missing = Object.entries({ ...packages, ...common })
    .filter(([, program]) => !existsSync(`/usr/bin/${program}`))
    .map(([name]) => name)
  if (missing.length === 0) return
  const apt = args =>
    spawnSync('apt-get', args, {
      stdio: 'ignore',
      timeout: 60_000,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0
  const install = () => apt(['install', '-y', '-q', '--no-install-recommends', ...missing])
  if (!install() && !(apt(['update', '-q']) && install()))
    console.error(`not installed: ${missing.join(', ')}`)
}
