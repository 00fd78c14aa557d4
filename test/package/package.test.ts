// The package as users get it: what `npm pack` puts into the tarball runs in an empty project.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { buildSync, type BuildOptions } from 'esbuild'

const root = fileURLToPath(new URL('../../', import.meta.url))
mkdirSync(join(root, 'test', 'tmp'), { recursive: true })
const project = mkdtempSync(join(root, 'test', 'tmp', 'package-'))
const modules = join(project, 'node_modules')
const installed = join(modules, 'millrace')
after(() => rmSync(project, { recursive: true, force: true }))

interface Packed {
  filename: string
  files: { path: string }[]
}

const run = (command: string, args: string[], cwd = project) =>
  spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 120_000 })

/** Scripts are left out, because other tests use dist/ meanwhile. */
function pack(): Packed {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', project]
  const { stdout, stderr } = run('npm', args, root)
  const [packed] = JSON.parse(stdout) as Packed[]
  assert.ok(packed, stderr)
  return packed
}

const { filename, files } = pack()
mkdirSync(installed, { recursive: true })
run('tar', ['xzf', join(project, filename), '-C', installed, '--strip-components=1'])
for (const name of [
  'tsx',
  'yaml',
  'brace-expansion',
  'balanced-match',
  'esbuild',
  'get-tsconfig',
  'resolve-pkg-maps',
  '@esbuild',
])
  symlinkSync(join(root, 'node_modules', name), join(modules, name))
writeFileSync(join(project, 'package.json'), '{ "type": "module" }')

const millrace = (...args: string[]) =>
  run(process.execPath, [join(installed, 'bin', 'millrace.js'), ...args])

const program = `import { main, task, waitOn } from 'millrace'
export const square = task({}, (x: number) => x * x)
main(async () => {
  console.log((await waitOn([1, 2, 3].map(x => square(x)))).join(' '))
})
`
const write = (name: string, text = program): string => {
  writeFileSync(join(project, name), text)
  return name
}

test('the tarball has the build, the parts in C, and a few files with names', () => {
  const paths = files.map(({ path }) => path)
  for (const path of ['dist/index.js', 'dist/flow.js', 'dist/cli.js', 'dist/thread.js'])
    assert.ok(paths.includes(path), `${path} is missing`)
  assert.ok(paths.includes('dist/millrace-library.js.map'), 'there are no source maps')
  assert.ok(paths.some(path => path.startsWith('native/')) && paths.some(path => path.startsWith('preload/')))
  const code = paths.filter(path => /^dist\/[^/]+\.js$/.test(path))
  assert.ok(code.length <= 45, `${code.length} files`)
  for (const path of code) assert.match(path, /^dist\/[a-z-]+\.js$/)
})

test('pages that the README and errors name are in it', () => {
  const texts = ['README.md', ...files.map(({ path }) => path).filter(path => /^dist\/[^/]+\.js$/.test(path))]
  const named = new Set<string>()
  for (const path of texts) {
    const text = readFileSync(join(installed, path), 'utf8')
    for (const [page] of text.matchAll(/\bdocs\/[a-z]+\.(?:md|png|svg)/g)) named.add(page)
  }
  assert.ok(named.has('docs/guide.md') && named.has('docs/machine.md'))
  for (const page of named)
    assert.ok(
      files.some(({ path }) => path === page),
      `${page} is missing`,
    )
})

test('its declarations are those of the entry points', () => {
  const types = files.filter(({ path }) => path.endsWith('.d.ts')).map(({ path }) => path)
  assert.ok(types.includes('dist/types/index.d.ts') && types.includes('dist/types/flow/index.d.ts'))
  for (const part of ['cli', 'node', 'storage', 'simulate', 'report', 'stream', 'cluster'])
    assert.deepEqual(
      types.filter(path => path.startsWith(`dist/types/${part}/`)),
      [],
    )
  for (const path of types)
    assert.doesNotMatch(readFileSync(join(installed, path), 'utf8'), /@internal/, path)
})

test('the first program of the README runs with it', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const text = /^```ts run\n([^]*?)^```/m.exec(readme)?.[1]
  write('first.ts', text)
  const { stdout, stderr } = millrace('run', 'first.ts', '--trace', 'run.json')
  assert.equal(stdout, '283146 primes below 4,000,000\n', stderr)
  assert.ok(readdirSync(project).includes('run.json'))
})

for (const name of ['app.ts', 'app.mts', 'app.cts'])
  test(`a program in ${name} runs`, () => {
    const { stdout, stderr } = millrace('run', '--progress', 'none', write(name))
    assert.equal(stdout, '1 4 9\n', stderr)
  })

test('a CommonJS program runs, also by itself', () => {
  const text = `const { main, task, waitOn } = require('millrace')
exports.square = task({}, x => x * x)
main(async () => console.log((await waitOn([1, 2, 3].map(x => exports.square(x)))).join(' ')))
`
  write('app.cjs', text)
  assert.equal(millrace('run', '--progress', 'none', 'app.cjs').stdout, '1 4 9\n')
  assert.equal(run(process.execPath, ['app.cjs']).stdout, '1 4 9\n')
})

const bundle = (format: 'esm' | 'cjs', outfile: string, options: BuildOptions = {}): void => {
  buildSync({
    absWorkingDir: project,
    entryPoints: [write('app.ts')],
    bundle: true,
    platform: 'node',
    logLevel: 'error',
    format,
    outfile,
    ...options,
  })
}

for (const format of ['esm', 'cjs'] as const) {
  const extension = format === 'esm' ? 'mjs' : 'cjs'
  test(`a bundle (${format}) that leaves packages external runs`, () => {
    bundle(format, `out.${extension}`, { packages: 'external', minify: true })
    const { stdout, stderr } = run(process.execPath, [`out.${extension}`])
    assert.equal(stdout, '1 4 9\n', stderr)
  })
  test(`a bundle (${format}) with Millrace inside is refused with the reason`, () => {
    bundle(format, `whole.${extension}`)
    const { status, stderr } = run(process.execPath, [`whole.${extension}`])
    assert.notEqual(status, 0)
    assert.match(stderr, /MR_BUNDLED/)
    assert.match(stderr, /--packages=external/)
    assert.match(millrace('run', `whole.${extension}`).stderr, /a bundler has put Millrace into the program/)
  })
}

test('with source maps, frames of Millrace stay out of failures', () => {
  const text = `import { main, task, waitOn } from 'millrace'
export const fails = task({}, () => { throw new Error('on purpose') })
main(async () => { await waitOn(fails()) })
`
  write('fails.ts', text)
  const { stderr } = spawnSync(process.execPath, [join(installed, 'bin', 'millrace.js'), 'run', 'fails.ts'], {
    cwd: project,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '--enable-source-maps' },
  })
  assert.match(stderr, /fails\.ts:2:/)
  assert.doesNotMatch(stderr, /src\/node/)
})
