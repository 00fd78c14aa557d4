import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeFolder, millrace } from '../cli/folder.ts'
import { configOf, toolsOrReason } from './support.ts'

const { skip } = await toolsOrReason()

/** 4 parts of 50,000 bytes. The last byte is written first; a part is written when the one before has been read. */
const PRODUCER = `
import os, time
part = 50000
f = open("f", "wb", buffering=0)
f.seek(4 * part - 1); f.write(b"d"); f.seek(0)
for i, letter in enumerate(b"abcd"):
    while i and not os.path.exists(os.environ["MILLRACE_PLACE"] + "/read%d" % (i - 1)): time.sleep(0.01)
    f.write(bytes([letter]) * part)
f.close()
`
const CONSUMER = `
import os, sys
i, part = int(sys.argv[1]), 50000
f = open("f", "rb", buffering=0)
f.seek(i * part)
data = b""
while len(data) < part: data += f.read(part - len(data))
open(os.environ["MILLRACE_PLACE"] + "/read%d" % i, "w").close()
open("out%d" % i, "wb").write(data)
`

test('consumers read their parts of a sparse file as it is filled', { skip, timeout: 120_000 }, async () => {
  const readers = [0, 1, 2, 3].map(i => `use${i}`)
  const folder = makeFolder({
    'producer.py': PRODUCER,
    'consumer.py': CONSUMER,
    'Config.json': configOf(
      {
        make: { out: ['f'], rules: [{ name: 'f', committed: 'on_close', mode: 'no_update' }] },
        ...Object.fromEntries(readers.map((name, i) => [name, { in: ['f'], out: [`out${i}`] }])),
      },
      { permanent: ['out*'] },
    ),
    'steps.json': JSON.stringify({
      make: 'python3 "$MILLRACE_PLACE/producer.py"',
      ...Object.fromEntries(readers.map((name, i) => [name, `python3 "$MILLRACE_PLACE/consumer.py" ${i}`])),
    }),
  })
  const { code, stderr } = await millrace(folder, [
    'stream',
    'run',
    'Config.json',
    '--steps',
    'steps.json',
    '--limit',
    '60',
  ])
  assert.equal(code, 0, stderr)
  for (const [i, letter] of [...'abcd'].entries())
    assert.equal(readFileSync(join(folder, `out${i}`), 'utf8'), letter.repeat(50_000))
})
