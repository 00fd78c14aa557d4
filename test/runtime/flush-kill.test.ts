import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { until } from './embedded.ts'
import { Program } from './program.ts'

const COUNT = 8
const BYTES = 1_500_000

/** Files of more than one piece go to the fast layer and are moved down slowly, so that a kill meets moves at any point. */
const PROGRAM = `
import { writeFile, appendFile } from 'node:fs/promises'
import { task, main, configure, waitOn, IN, FILE_OUT } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'always' })
export const save = task({ io: true, params: [IN, FILE_OUT], size: ${BYTES} }, async (n: number, path: string) => {
  await writeFile(path, Buffer.alloc(${BYTES}, n))
})
main(async () => {
  const saved = Array.from({ length: ${COUNT} }, (_, i) => save(i + 1, process.argv[2] + '/' + (i + 1)))
  await Promise.all(saved.map((one, i) => waitOn(one).then(() => appendFile('committed', i + 1 + '\\n'))))
  if (process.argv[3] === 'stay') await new Promise(resolve => setTimeout(resolve, 60_000))
})
`

const skip =
  !existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync('/tmp').dev ? 'no second device' : false

const isWhole = (path: string): boolean => {
  const bytes = readFileSync(path)
  return bytes.equals(Buffer.alloc(BYTES, Number(path.split('/').at(-1))))
}

test(
  'killed at random points of a flush and run again: nothing is lost and nothing is doubled',
  { skip },
  async () => {
    for (const [i, kill] of fc
      .sample(
        fc.record({ committed: fc.integer({ min: 1, max: COUNT }), wait: fc.integer({ min: 0, max: 400 }) }),
        5,
      )
      .entries()) {
      const program = new Program({ 'app.ts': PROGRAM })
      const fast = mkdtempSync('/dev/shm/millrace-test-flush-')
      const layers = [fast, program.path('slow')]
      // The results are on the slow layer's disk every other time: then flushing brings them to their paths.
      const out = i % 2 === 0 ? program.path('out') : join(fast, 'out')
      try {
        for (const path of [program.path('slow'), out]) mkdirSync(path)
        writeFileSync(
          program.path('machine.yaml'),
          `nodes:
  - storage:
      - { name: memory, path: ${fast}, bandwidth: 1000MB/s, capacity: 50MB }
      - { name: disk, path: slow, bandwidth: 12MB/s }
`,
        )
        program.start('app.ts', [out, 'stay'])
        const committed = (): string[] => program.read('committed').split('\n').filter(Boolean)
        await until(() => committed().length >= kill.committed, 'some are committed')
        await new Promise(resolve => setTimeout(resolve, kill.wait))
        const promised = committed()
        process.kill(program.coordinator, 'SIGKILL')
        await program.end()
        // Nothing is read from a half-written place: what is at its path now is whole.
        for (const name of visible(out)) assert(isWhole(join(out, name)), `${name} after the kill`)
        // A run that makes nothing brings home what there is.
        writeFileSync(program.path('none.ts'), PROGRAM.replace(`length: ${COUNT}`, 'length: 0'))
        const recovery = await program.run('none.ts', [out])
        assert.equal(recovery.code, 0, recovery.err)
        for (const n of promised) assert(isWhole(join(out, n)), `${n} was committed`)
        for (const name of visible(out)) assert(isWhole(join(out, name)), `${name} after the recovery`)
        const again = await program.run('app.ts', [out])
        assert.equal(again.code, 0, again.err)
        assert.deepEqual(
          visible(out)
            .map(Number)
            .sort((a, b) => a - b),
          Array.from({ length: COUNT }, (_, k) => k + 1),
        )
        for (const name of visible(out)) assert(isWhole(join(out, name)), name)
        for (const layer of layers) {
          assert.deepEqual(
            readdirSync(layer).filter(name => name.startsWith('.millrace')),
            [],
          )
        }
      } finally {
        rmSync(fast, { recursive: true, force: true })
        program.remove()
      }
    }
  },
)

const visible = (folder: string): string[] => readdirSync(folder).filter(name => !name.startsWith('.'))
