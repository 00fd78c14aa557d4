// Builds dist/. Rollup joins the modules into a few files: loading hundreds of small ones takes longer than
// starting a thread, and every compute thread loads them. tsc checks the types and writes declarations.
// Nothing is minified, so stack traces keep their names, and source maps lead to src/.
import { cpSync, existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ensureInstalled, root, run, tool } from './shared.mjs'

ensureInstalled()
if (!existsSync(tool('@rollup/wasm-node'))) {
  console.error('not built: development dependencies are missing. Run `npm ci`, then `npm run build`.')
  // `npm install --omit=dev` in a clone also runs this script (prepare), and must not fail.
  process.exit(process.env['npm_lifecycle_event'] === 'prepare' ? 0 : 1)
}
const { rollup } = await import('@rollup/wasm-node')
const { build, transform } = await import('esbuild')
rmSync(join(root, 'dist'), { recursive: true, force: true })

/** The TypeScript files below a folder of src/. */
const modulesOf = folder =>
  readdirSync(join(root, 'src', folder), { recursive: true })
    .filter(name => name.endsWith('.ts'))
    .map(name => join(folder, name))

/**
 * The files of dist/ that entry points share. Each takes its modules and all that they import, except what an
 * earlier one has; so they import each other in one direction only. What a command does not need is not loaded.
 */
const PARTS = [
  [
    'base',
    ['core/errors.ts', 'core/events.ts', 'runtime/run-options.ts', 'report/text.ts', 'report/format.ts'],
  ],
  ['base', ['general', 'model/options'].flatMap(modulesOf)],
  [
    'base',
    [
      'model/errors.ts',
      'model/stream.ts',
      'storage/folders.ts',
      'core/data/staging-name.ts',
      'native/build.ts',
    ],
  ],
  ['command-line', ['cli/main.ts', 'cli/help.ts']],
  ['journal', modulesOf('report/journal')],
  ['options', ['cli/run-options.ts', 'cli/output.ts', 'cli/run/run.ts']],
  ['make', ['flow/index.ts', ...modulesOf('cli/make')]],
  ['library', ['index.ts']],
  ['workflow', ['runtime/workflow/start.ts']],
  ['report', modulesOf('report').filter(module => !/dashboard|compare|crate|otlp/.test(module))],
  ['dashboard', ['report/dashboard/server.ts', ...modulesOf('cli/dashboard'), ...modulesOf('cli/report')]],
  ['inspect', modulesOf('cli/inspect')],
  ['streaming', [...modulesOf('stream'), ...modulesOf('cli/stream')]],
  ['simulate', modulesOf('cli/simulate')],
  ['doctor', ['cli/doctor/doctor.ts']],
]

const typescript = {
  name: 'typescript',
  transform: (text, id) =>
    transform(text, { loader: 'ts', target: 'node20.19', sourcemap: true, sourcefile: id }),
}

async function bundle(input, parts) {
  const partOf = new Map()
  const assign = getModuleInfo => {
    for (const [name, modules] of parts) {
      const visit = id => {
        if (partOf.has(id) || !getModuleInfo(id) || getModuleInfo(id).isExternal) return
        partOf.set(id, name)
        getModuleInfo(id).importedIds.forEach(visit)
      }
      modules.map(module => join(root, 'src', module)).forEach(visit)
    }
  }
  const bundled = await rollup({
    input: Object.fromEntries(Object.entries(input).map(([name, path]) => [name, join(root, path)])),
    plugins: [typescript],
    external: id => !id.startsWith('.') && !id.startsWith('/'),
    preserveEntrySignatures: 'strict',
    // Nothing to gain: what is not used is not in src/.
    treeshake: false,
  })
  await bundled.write({
    // Flat, so that files find each other beside themselves in whichever part they are.
    dir: join(root, 'dist'),
    sourcemap: true,
    minifyInternalExports: false,
    entryFileNames: '[name].js',
    chunkFileNames: 'millrace-[name].js',
    manualChunks: (id, { getModuleInfo }) => {
      if (partOf.size === 0) assign(getModuleInfo)
      return partOf.get(id)
    },
  })
  await bundled.close()
}

/** Keeps the declarations that those of the entry points need. */
function removeInternalTypes(types) {
  const needed = new Set()
  const visit = file => {
    if (needed.has(file)) return
    needed.add(file)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.ts['"]/g))
      visit(join(dirname(file), `${path}.d.ts`))
  }
  visit(join(types, 'index.d.ts'))
  visit(join(types, 'flow', 'index.d.ts'))
  visit(join(types, 'linalg', 'index.d.ts'))
  for (const name of readdirSync(types, { recursive: true })) {
    const path = join(types, name)
    if (name.endsWith('.d.ts') && !needed.has(path)) rmSync(path)
  }
}

await bundle(
  {
    index: 'src/index.ts',
    flow: 'src/flow/index.ts',
    'flow-stamp-worker': 'src/flow/state/stamp-worker.ts',
    linalg: 'src/linalg/index.ts',
    cli: 'src/cli/main.ts',
    'lease-thread': 'src/cluster/lease/lease-thread.ts',
    'doctor-thread': 'src/cli/doctor/doctor-thread.ts',
    'prepare-native': 'src/native/prepare.ts',
    'dashboard-process': 'src/report/dashboard/process.ts',
  },
  PARTS,
)
// A thread and a coordinator never share a module: kept apart, both have fewer files to load.
await bundle(
  {
    thread: 'src/node/threads/thread.ts',
    'mpi-rank': 'src/node/mpi/rank.ts',
    'mpi-start': 'src/node/mpi/start-there.ts',
    'thread-names': 'src/thread-names.ts',
  },
  [],
)
// The live page: one script and one style sheet, which the browser gets from our own server.
await build({
  absWorkingDir: root,
  entryPoints: { app: 'dashboard/main.tsx' },
  outdir: 'dist/dashboard',
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2022',
  charset: 'utf8',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
})
cpSync(join(root, 'dashboard', 'index.html'), join(root, 'dist', 'dashboard', 'index.html'))
run(process.execPath, [tool('typescript/bin/tsc'), '-p', 'tsconfig.json'])
removeInternalTypes(join(root, 'dist', 'types'))
run(process.execPath, [join(root, 'dist', 'prepare-native.js')])
