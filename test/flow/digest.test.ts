import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { digestFolderNow } from '../../src/flow/state/digest-now.ts'
import { digestPath } from '../../src/flow/state/stamp.ts'
import { makeFolder } from '../cli/folder.ts'
import { make } from './flows.ts'

const size = fc.oneof(fc.constantFrom(0, 1, 65_536, 65_537, 4 * 2 ** 20, 4 * 2 ** 20 + 1), fc.nat(1000))

test('a folder has the same digest for all users', async () => {
  const name = fc.constantFrom('a', 'b c', "d'", 'é', '-e', 'f\ng', '.millrace', '.millrace-x')
  const path = fc.array(name, { minLength: 1, maxLength: 3 }).map(parts => parts.join('/'))
  await fc.assert(
    fc.asyncProperty(fc.dictionary(path, fc.tuple(size, fc.boolean()), { maxKeys: 6 }), async files => {
      const folder = mkdtempSync(join(tmpdir(), 'millrace-test-digest-'))
      try {
        for (const [file, [bytes, isLink]] of Object.entries(files)) {
          try {
            mkdirSync(dirname(join(folder, file)), { recursive: true })
            if (isLink) symlinkSync('somewhere', join(folder, file))
            else writeFileSync(join(folder, file), Buffer.alloc(bytes, bytes % 251))
          } catch {
            // A file and a folder of one name: one of them is there.
          }
        }
        assert.equal(digestFolderNow(folder), await digestPath(folder))
      } finally {
        rmSync(folder, { recursive: true })
      }
    }),
    { numRuns: 40 },
  )
})

test('a folder with many files is an input like another', async () => {
  const many = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`many/${i}`, String(i)]))
  const folder = makeFolder({
    ...many,
    'flow.mjs': `import { dir, rule, sh } from 'millrace/flow'
rule(dir('copy'), 'many', ({ out, in: from }) => sh\`cp \${from}/* \${out}\`)
rule('count', 'copy', ({ out, in: from }) => sh\`ls \${from} | wc -l > \${out}\`)`,
  })
  await make(folder)
  assert.match((await make(folder)).stderr, /nothing to do/)
  writeFileSync(join(folder, 'many/7'), '8')
  assert.match((await make(folder, ['--explain'])).stderr, /copy: many has changed/)
})
