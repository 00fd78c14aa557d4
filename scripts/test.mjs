// `npm test [-- [--no-install] FILTER…]`: installs, builds, lints, checks types and runs the tests (those whose
// path contains a FILTER, when given; lint, types and the second Node are then left out).
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build, ensureInstalled, root, run } from './shared.mjs'
import { runFiles } from './testing/run-files.mjs'

const mayInstall = !process.argv.includes('--no-install')
const filters = process.argv.slice(2).filter(word => word !== '--no-install')

/** Debian packages of programs that tests run: the program to look for, and what the tests do with it. */
const PACKAGES = {
  chromium: ['chromium', 'the live page, driven by a browser'],
  montage: ['mProjectPP', 'the mosaic of examples/montage'],
  hmmer: ['hmmbuild', 'the protein search of examples/hmmer'],
  bwa: ['bwa', 'the alignments of examples/variants'],
  samtools: ['samtools', 'the alignments of examples/variants'],
  bcftools: ['bcftools', 'the variants of examples/variants'],
  make: ['make', 'the comparison of programs with and without the streaming library'],
  git: ['git', 'the same comparison'],
  sqlite3: ['sqlite3', 'the same comparison'],
  zip: ['zip', 'the same comparison'],
  'openssh-server': ['../sbin/sshd', 'nodes that are reached by ssh, on loopback'],
  'slurm-wlm': ['sbatch', 'nodes of a Slurm of its own, on this machine'],
  metis: ['gpmetis', 'graphs of tasks that are divided among nodes'],
  munge: ['munge', 'nodes of a Slurm of its own'],
  'openmpi-bin': ['mpirun.openmpi', 'MPI tasks'],
  'libopenmpi-dev': ['mpicc.openmpi', 'MPI tasks'],
  'libhdf5-openmpi-dev': ['h5pcc.openmpi', 'datasets of HDF5 in MPI tasks'],
  mpich: ['mpirun.mpich', 'MPI tasks with the other MPI'],
  'libmpich-dev': ['mpicc.mpich', 'MPI tasks with the other MPI'],
}

/** Tests that also run on the other end of the supported versions of Node. */
const ON_OTHER_NODE = [
  'test/general/',
  'test/model/',
  'test/core/',
  'test/package/',
  'test/cli/run.test.ts',
  'test/flow/language.test.ts',
  'test/flow/sh',
  'test/runtime/commands.test.ts',
  'test/runtime/failures.test.ts',
  'test/runtime/generators.test.ts',
  'test/runtime/values.test.ts',
]
const OLDEST = '20.19.0'
const NEWEST_LTS = '26'

/**
 * A test or hook that takes longer hangs, unless it says mayTake(seconds); so does a file that takes longer. What a file
 * started has some time to end after it.
 */
const LIMITS = { test: 240_000, file: 400_000, end: 5000 }

/** Test files that failed once and then passed, and those that left processes behind. */
const unsteady = []
const untidy = []

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

await runTests(process.execPath, files)
if (filters.length === 0) await runOnOtherNode()
if (unsteady.length > 0)
  console.error(`these test files failed at first and passed alone:\n  ${unsteady.join('\n  ')}`)
if (untidy.length > 0) console.error(`these test files left processes behind:\n  ${untidy.join('\n  ')}`)

/**
 * Runs test files, two at a time. A file that fails runs once more, alone: if it passes then, it is named at the end and
 * the run goes on. A file that fails twice, or hangs, ends the run.
 */
async function runTests(node, names, environment = process.env) {
  const failed = await runOnce(node, names, environment, 2)
  if (failed.length === 0) return
  console.error(`these test files failed, and run once more, alone:\n  ${failed.join('\n  ')}`)
  const again = await runOnce(node, failed, environment, 1)
  if (again.length > 0) {
    console.error(`these test files failed twice:\n  ${again.join('\n  ')}`)
    process.exit(1)
  }
  unsteady.push(...failed)
}

/** The files in which a test failed. */
async function runOnce(node, names, environment, atOnce) {
  const { failed, left, problem } = await runFiles(node, names, { limits: LIMITS, atOnce, environment })
  if (problem !== null) {
    console.error(`the tests could not be run: ${problem}`)
    process.exit(1)
  }
  untidy.push(...left)
  return failed
}

/** On the newest LTS if this Node is older, else on the oldest that is supported. */
async function runOnOtherNode() {
  const [major] = process.versions.node.split('.')
  const version = Number(major) < Number(NEWEST_LTS) ? NEWEST_LTS : OLDEST
  const folder = join(root, '.millrace', `node-${version}`)
  const name = `node-${process.platform}-${process.arch}`
  const bin = join(folder, 'node_modules', name, 'bin')
  if (!existsSync(join(bin, 'node')) && mayInstall) {
    console.error(
      `installing Node ${version} into ${relative(root, folder)}, to run some tests with it too …`,
    )
    mkdirSync(folder, { recursive: true })
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', folder, `${name}@${version}`]
    spawnSync('npm', args, { stdio: 'ignore', timeout: 90_000 })
  }
  if (!existsSync(join(bin, 'node'))) {
    console.error(`not run on Node ${version}: it is not installed`)
    return
  }
  console.error(`on Node ${version}:`)
  const names = files.filter(file => ON_OTHER_NODE.some(path => file.startsWith(path)))
  await runTests(join(bin, 'node'), names, { ...process.env, PATH: `${bin}:${process.env['PATH']}` })
}

/** Tests skip themselves, and say so, where a program is missing. */
function installPrograms() {
  const missing = Object.entries(PACKAGES).filter(([, [program]]) => !isInstalled(program))
  if (missing.length === 0) return
  const names = missing.map(([name]) => name)
  const list = missing.map(([name, [program, why]]) => `  ${name} (${program}): ${why}`).join('\n')
  const isRoot = process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (!mayInstall || !isRoot) {
    const reason = mayInstall ? 'only root can install them, with apt-get' : '--no-install'
    console.error(`tests that need these Debian packages are skipped (${reason}):\n${list}`)
    return
  }
  console.error(
    `installing Debian packages as root, for tests (skip with npm test -- --no-install):\n${list}`,
  )
  const apt = args =>
    spawnSync('apt-get', args, {
      stdio: 'ignore',
      timeout: 300_000,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0
  const install = () => apt(['install', '-y', '-q', '--no-install-recommends', ...names])
  if (!install() && !(apt(['update', '-q']) && install()))
    console.error(`not installed, so tests that need them are skipped: ${names.join(', ')}`)
}

function isInstalled(program) {
  return (process.env['PATH'] ?? '').split(':').some(folder => existsSync(join(folder, program)))
}
