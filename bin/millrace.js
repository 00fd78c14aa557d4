#!/usr/bin/env node
// Starts in no time: the version needs nothing but package.json, and all else is loaded when it is asked for.
// CommonJS, because the pool of threads behind node:fs gets its size at the first use, which for an ES module
// is its own loading: with the usual four, I/O tasks would wait for each other instead of for their devices.
const { existsSync, readFileSync, readdirSync } = require('node:fs')
const { availableParallelism } = require('node:os')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const args = process.argv.slice(2)
const root = join(__dirname, '..')

/** Descriptors of a thread. */
const THREAD = 12

/** Node ends without a word where the threads of its pool cannot be started: so ask first what there is. */
function fitLimits() {
  const read = path => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const limits = read('/proc/self/limits')
  const soft = name => Number(new RegExp(`^${name} +(\\d+)`, 'm').exec(limits)?.[1] ?? Infinity)
  const descriptors = soft('Max open files')
  const processes = process.getuid?.() === 0 ? Infinity : soft('Max processes')
  // The limit counts all threads of the user, and only a low one is worth counting them.
  const running = processes < 4096 ? threadsOfUser(read) : 0
  const left = processes - running
  // A thread for TypeScript has another one that loads it, with its own descriptors. Two threads are for I/O tasks.
  const descriptorsFor = cpus => 64 + THREAD * (cpus + 2)
  // Two for each of these threads, one that starts programs and the program; four of the pool, and Node's and its helpers'.
  const threadsFor = cpus => 4 * cpus + 4 + 4 + 16
  const asked = askedCpus()
  // Nobody is refused for a large number where the limit is the usual one: most of those threads never start.
  let cpus = asked === null ? availableParallelism() : Math.min(asked, 80)
  while (asked === null && cpus > 1 && (descriptorsFor(cpus) > descriptors || threadsFor(cpus) > left)) cpus--
  const neededDescriptors = descriptorsFor(cpus)
  const neededThreads = threadsFor(cpus)
  // Up to eight I/O tasks may have a thread each.
  const rest = descriptors - neededDescriptors
  const spare = rest < 8 * THREAD ? 1 + rest / THREAD : 9 + (rest - 8 * THREAD) / 3
  const free = left - neededThreads
  const io = Math.max(1, Math.min(64, Math.floor(spare), 1 + Math.floor(free / 4)))
  const pool = Math.max(4, Math.min(64, io, 4 + Math.floor(free / 4)))
  const missing =
    descriptors < neededDescriptors
      ? `at most ${descriptors} files may be open, and ${neededDescriptors} are needed\n  Raise the limit, for instance with ulimit -n 4096.`
      : left < neededThreads
        ? `at most ${processes} processes and threads may run, of which ${running} do, and ${neededThreads} more are needed\n  End some, or raise the limit, for instance with ulimit -u ${running + neededThreads + 64}.`
        : ''
  return { io, pool, cpus, missing }
}

/** As many CPUs as the user wants; null: all. */
function askedCpus() {
  const at = args.findIndex(each => /^(--cpus|--jobs)(=|$)|^-j\d*$/.test(each))
  const inOne = /[=j](\d+)$/.exec(args[at] ?? '')?.[1]
  const given = at < 0 ? process.env['MILLRACE_CPUS'] : (inOne ?? args[at + 1])
  return /^[1-9]\d*$/.test(given ?? '') ? Number(given) : null
}

function threadsOfUser(read) {
  const own = process.getuid?.()
  let count = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const status = read(`/proc/${name}/status`)
    if (Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]) === own)
      count += Number(/^Threads:\s+(\d+)/m.exec(status)?.[1])
  }
  return count
}

if (['--version', '-V', 'version'].includes(args[0])) {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  process.stdout.on('error', () => (process.exitCode = 1)).write(`${version}\n`)
} else {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  // The first where the build joins modules, the second where it only compiles them.
  const entry = ['dist/cli.js', 'dist/cli/main.js']
    .map(path => join(root, path))
    .find(path => existsSync(path))
  if (major < 20 || (major === 20 && minor < 19)) {
    process.stderr.write(
      `millrace: Node ${process.versions.node} is too old\n  Install Node 20.19 or newer.\n`,
    )
    process.exitCode = 2
  } else if (!entry) {
    process.stderr.write(`millrace: it has not been built\n  Run \`npm run build\` in ${root}\n`)
    process.exitCode = 2
  } else {
    const room = fitLimits()
    if (args[0] === 'run' || room.pool < 64) process.env['UV_THREADPOOL_SIZE'] ??= String(room.pool)
    if (room.cpus < availableParallelism()) process.env['MILLRACE_CPUS'] ??= String(room.cpus)
    if (room.io < 64) process.env['MILLRACE_IO_EXECUTORS'] ??= String(room.io)
    if (room.missing) {
      process.stderr.write(`millrace: ${room.missing} [MR_LIMIT]\n`)
      process.exit(1)
    }
    let isPending = true
    let isDrained = false
    process.on('beforeExit', () => (isDrained = true))
    // A program that waits for what never comes ends so, and must not pass for one that ended well.
    process.on('exit', code => {
      if (!isPending || !isDrained || code !== 0) return
      process.exitCode = 13
      process.stderr.write('millrace: it waits for something that never comes, and nothing is left to do\n')
    })
    void import(pathToFileURL(entry).href).then(({ main }) => main(args)).finally(() => (isPending = false))
  }
}
