// The parts in C build on the user's machine, with the compiler that is there: ours give no warning, and one that does
// warn still builds them.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasCommand, preload, root, skip } from './harness.ts'

const numbers = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)
/** What a compiler says that it is, without the name that it was called by. */
const versionOf = (name: string): string =>
  spawnSync(name, ['--version'], { encoding: 'utf8' }).stdout.replace(name, '')
const names = [
  'cc',
  ...numbers(9, 16).map(version => `gcc-${version}`),
  ...numbers(11, 22).map(version => `clang-${version}`),
].filter(hasCommand)
// Most often `cc` is one of the others.
const compilers = [...new Map(names.map(name => [versionOf(name), name])).values()]

const folders = [preload, join(root, 'native'), join(root, 'native', 'addon'), join(root, 'native', 'look')]
const sources = folders.flatMap(folder =>
  readdirSync(folder)
    .filter(name => name.endsWith('.c'))
    .map(name => join(folder, name)),
)

for (const cc of compilers)
  for (const level of ['-O0', '-O3'])
    test(`${cc} ${level} gives no warning`, { skip }, () => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-cc-'))
      try {
        const flags = ['-std=gnu11', level, '-g', '-Wall', '-Wextra', '-Werror', '-fPIC', '-c']
        const { status, stderr } = spawnSync(cc, [...flags, ...sources], { cwd: folder, encoding: 'utf8' })
        assert.equal(status, 0, stderr)
      } finally {
        rmSync(folder, { recursive: true })
      }
    })

for (const cc of compilers)
  test(`${cc} builds the library`, { skip }, () => {
    const made = mkdtempSync(join(tmpdir(), 'millrace-built-'))
    try {
      const env = { ...process.env, CC: cc, MILLRACE_WERROR: '1' }
      const build = ['sh', join(preload, 'build.sh'), made] as const
      const { status, stderr } = spawnSync(build[0], build.slice(1), { env, encoding: 'utf8' })
      assert.equal(status, 0, stderr)
      const echo = [`LD_PRELOAD=${join(made, 'libmillrace.so')}`, 'echo', 'runs']
      assert.equal(spawnSync('env', echo, { encoding: 'utf8' }).stdout, 'runs\n')
    } finally {
      rmSync(made, { recursive: true })
    }
  })

for (const folder of folders)
  test(`a compiler that warns of each file builds ${folder.slice(root.length + 1)}`, { skip }, () => {
    const made = mkdtempSync(join(tmpdir(), 'millrace-warned-'))
    try {
      const header = join(made, 'warn.h')
      const cc = join(made, 'cc')
      writeFileSync(header, '#ifndef __ASSEMBLER__\nstatic int unused(void) { int a; return a; }\n#endif\n')
      writeFileSync(cc, `#!/bin/sh\nexec cc -include ${header} "$@"\n`)
      chmodSync(cc, 0o755)
      const env: NodeJS.ProcessEnv = { ...process.env, CC: cc }
      delete env['MILLRACE_WERROR']
      const { status, stderr } = spawnSync('sh', [join(folder, 'build.sh'), join(made, 'out')], {
        env,
        encoding: 'utf8',
      })
      assert.match(stderr, /warning/)
      assert.equal(status, 0, stderr)
      assert.ok(existsSync(join(made, 'out')))
    } finally {
      rmSync(made, { recursive: true })
    }
  })
