import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { Program } from './program.ts'

const PROGRAM = `
import { writeFile } from 'node:fs/promises'
import { task, main, configure, IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'off', progress: 'plain' })
export const save = task({ io: true, params: [IN, FILE_OUT], size: '100kB' }, async (n: number, path: string) => {
  await writeFile(path, Buffer.alloc(100_000, n))
})
main(() => {
  for (let n = 1; n <= 6; n++) save(n, 'out/' + n)
})
`

const skip = process.getuid?.() === 0 ? false : 'mounting needs root'

/** Each fault is that of the fast layer; the disk below it is sound. */
const FAULTS: [title: string, mount: string, message: RegExp][] = [
  ['has less room than its description says', 'size=256k', /fast .*is full/],
  ['has no inodes left', 'size=4m,nr_inodes=7', /fast has no inodes left for more files/],
  ['is read-only', 'size=1m,ro', /fast .*is read-only/],
]

for (const [title, options, message] of FAULTS) {
  test(`a device that ${title} is reported and left out, and all results are written`, { skip }, async () => {
    const program = new Program({ 'app.ts': PROGRAM })
    const fast = program.path('fast')
    mkdirSync(program.path('slow'))
    mkdirSync(fast)
    assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', fast]).status, 0)
    try {
      writeFileSync(
        program.path('machine.yaml'),
        `nodes:
  - storage:
      - { name: fast, path: fast, bandwidth: 1000MB/s, capacity: 1GB }
      - { name: slow, path: slow, bandwidth: 100MB/s }
`,
      )
      const { code, err } = await program.run('app.ts')
      assert.equal(code, 0, err)
      assert.match(err, message)
      for (let n = 1; n <= 6; n++) {
        assert.deepEqual(readFileSync(program.path(`out/${n}`)), Buffer.alloc(100_000, n))
      }
    } finally {
      spawnSync('umount', [fast])
      program.remove()
    }
  })
}

const FULL: [title: string, more: string][] = [
  ['the only device', ''],
  ['the only device that is there', '      - { name: slow, path: nowhere, bandwidth: 100MB/s }\n'],
]

for (const [title, more] of FULL) {
  test(`when ${title} is full, the rest goes to the working directory`, { timeout: 240_000 }, async () => {
    const program = new Program({
      'app.ts': PROGRAM,
      'machine.yaml': `nodes:
  - storage:
      - { name: fast, path: fast, bandwidth: 1000MB/s, capacity: 250kB }
${more}`,
    })
    mkdirSync(program.path('fast'))
    try {
      const { code, err } = await program.run('app.ts')
      assert.equal(code, 0, err)
      for (let n = 1; n <= 6; n++) assert.equal(readFileSync(program.path(`out/${n}`)).length, 100_000)
    } finally {
      program.remove()
    }
  })
}
