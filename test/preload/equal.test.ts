// Programs run plain and under the library: the same output, exit code and files, where the library has
// nothing to say (outside), inside the managed directory on plain files, and as the producer of governed ones; there with
// the library that ends a program when its own C does something that is not defined.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { hasCommand, rule, skip, start, step, tools, trapped, Workflow } from './harness.ts'
import { programs } from './programs.ts'

const treeOf = (folder: string): string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).sort().map(name => {
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) return `${name} -> ${readlinkSync(path)}`
    if (!stat.isFile()) return `${name}/`
    return `${name} ${stat.size} ${(stat.mode & 0o777).toString(8)} ${createHash('md5').update(readFileSync(path)).digest('hex')}`
  })

/** Beside the managed directories, so that the file system is the same. */
const outside = (): string => mkdtempSync('/dev/shm/millrace-test-eq-')

const seen = async (
  script: string,
  folder: string,
  env: Record<string, string | undefined>,
): Promise<Record<string, unknown>> => {
  const clean = { LC_ALL: 'C', PYTHONDONTWRITEBYTECODE: '1' }
  const line = script.replace(/^fixture (.*)/, (_, name: string) => tools.fixture(name))
  const { code, stdout, stderr } = await start('bash', ['-c', line], {
    cwd: folder,
    env: { ...env, ...clean },
    limit: 60_000,
  }).done
  const named = (text: string): string => text.replaceAll(folder, '')
  const tree = treeOf(folder)
  rmSync(folder, { recursive: true, force: true })
  return { code, stdout: named(stdout), stderr: named(stderr), tree }
}

const places: [string, (workflow: Workflow) => string][] = [
  ['outside the managed directory', outside],
  ['on plain files inside', workflow => workflow.path('plain')],
  ['as the producer of every file', workflow => workflow.path('made')],
]

for (const [needs, name, script] of programs)
  test(
    `${name}: the same with the library`,
    { skip: skip || (hasCommand(needs) ? false : `${needs} is not installed`), timeout: 200_000 },
    async () => {
      const workflow = new Workflow([step(0, 'S'), rule('file', 'made/*', '0', 'on_close:1', 'no_update')])
      try {
        const expected = await seen(script, outside(), {})
        for (const [where, folderOf] of places) {
          const folder = folderOf(workflow)
          mkdirSync(folder, { recursive: true })
          const lib = where.startsWith('as the producer') ? trapped() : tools.lib
          assert.deepEqual(
            await seen(script, folder, { ...workflow.env('S'), LD_PRELOAD: lib }),
            expected,
            where,
          )
        }
      } finally {
        workflow.destroy()
      }
    },
  )

test('the same with the switch off and without CAPIO_DIR', { skip }, async () => {
  const off = await start('sh', ['-c', 'echo x; exit 3'], { env: { LD_PRELOAD: tools.lib } }).done
  assert.deepEqual([off.code, off.stdout, off.stderr], [3, 'x\n', ''])
})
