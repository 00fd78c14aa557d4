// Builds dist/: esbuild joins the modules into a few files, because loading seventy small ones takes longer
// than starting a thread, and every compute thread loads them; tsc checks the types and writes declarations.
// Nothing is minified, so stack traces keep their names.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureInstalled, root, run, tool } from './shared.mjs'

ensureInstalled()
const { build } = await import('esbuild')
rmSync(join(root, 'dist'), { recursive: true, force: true })
const bundle = entryPoints =>
  build({
    absWorkingDir: root,
    entryPoints,
    // Flat, so that files can find each other beside themselves whatever chunk they end up in.
    outdir: 'dist',
    chunkNames: 'chunk-[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    packages: 'external',
    logLevel: 'warning',
  })
await bundle({
  index: 'src/index.ts',
  flow: 'src/flow/index.ts',
  'flow-looks': 'src/flow/looks-thread.ts',
  'flow-hands': 'src/flow/hands-thread.ts',
  cli: 'src/cli/main.ts',
  'doctor-thread': 'src/cli/doctor-thread.ts',
  'prepare-native': 'src/native/prepare.ts',
})
// A thread and a coordinator never share a module: kept apart, both have fewer files to load.
await bundle({ thread: 'src/execute/thread.ts', 'thread-names': 'src/thread-names.ts' })
run(process.execPath, [tool('typescript/bin/tsc'), '-p', 'tsconfig.json'])
run(process.execPath, [join(root, 'dist', 'prepare-native.js')])
