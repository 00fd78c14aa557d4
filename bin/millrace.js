#!/usr/bin/env node
// Starts in no time: the version needs nothing but package.json, and all else is loaded when it is asked for.
import { existsSync, readFileSync } from 'node:fs'

const [first = ''] = process.argv.slice(2)

if (['--version', '-V', 'version'].includes(first)) {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  process.stdout.write(`${version}\n`)
} else {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  // The first where the build joins modules, the second where it only compiles them.
  const entry = ['../dist/cli.js', '../dist/cli/main.js']
    .map(path => new URL(path, import.meta.url))
    .find(url => existsSync(url))
  if (major < 20 || (major === 20 && minor < 19)) {
    process.stderr.write(
      `millrace: Node ${process.versions.node} is too old\n  Install Node 20.19 or newer.\n`,
    )
    process.exitCode = 2
  } else if (!entry) {
    const root = decodeURIComponent(new URL('..', import.meta.url).pathname)
    process.stderr.write(`millrace: it has not been built\n  Run \`npm run build\` in ${root}\n`)
    process.exitCode = 2
  } else {
    const { main } = await import(entry.href)
    await main(process.argv.slice(2))
  }
}
