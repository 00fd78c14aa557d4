import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { keepLearned, learnedBefore } from '../../src/runtime/known-devices.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-learned-'))
after(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(join(folder, '.millrace'))

const known = {
  kind: 'save',
  device: 'ssd',
  bandwidth: 5e6,
  spent: 20,
  trials: [{ bandwidth: 5e6, concurrency: 4, mean: 20 }],
}

test('what a run has learned should be there for the next', async () => {
  await keepLearned({ folder }, [known])
  assert.deepEqual(learnedBefore({ folder }), [known])
})

for (const [name, text] of [
  ['is cut off', '[{"kind": "sa'],
  ['is an object', '{}'],
  ['is null', 'null'],
  [
    'has entries of another form',
    '[null, 1, {"kind": "save"}, {"kind": "save", "device": "ssd", "trials": [null]}]',
  ],
  ['has a time of zero', JSON.stringify([{ ...known, trials: [{ bandwidth: 1, concurrency: 1, mean: 0 }] }])],
] as const) {
  test(`given a file of what was learned that ${name}, a run should learn again`, () => {
    writeFileSync(join(folder, '.millrace', 'learned.json'), text)
    assert.deepEqual(learnedBefore({ folder }), [])
  })
}
