#!/usr/bin/env node
// Starts in no time: the version needs nothing but package.json, and all else is loaded when it is asked for.
// CommonJS, because the pool of threads behind node:fs gets its size at the first use, which for an ES module
// is its own loading: with the usual four, I/O tasks would wait for each other instead of for their devices.
const { existsSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')

const args = process.argv.slice(2)
const root = join(__dirname, '..')

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
    if (args[0] === 'run') process.env['UV_THREADPOOL_SIZE'] ??= '64'
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
