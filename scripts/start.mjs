// `npm start`: installs, builds and runs the demo. Further arguments go to the demo.
import { join } from 'node:path'
import { build, ensureInstalled, root, run } from './shared.mjs'

ensureInstalled()
build()
run(process.execPath, [
  join(root, 'bin', 'millrace.js'),
  'run',
  'examples/demo/demo.ts',
  '--trace',
  'run.json',
  '--',
  ...process.argv.slice(2),
])
