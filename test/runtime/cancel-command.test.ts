import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import test from 'node:test'
import { Program } from './program.ts'

const PROGRAM = `
import { existsSync } from 'node:fs'
import { FILE_OUT, IN, cancel, command, group, main } from 'millrace'
export const slow = command({ params: [IN, FILE_OUT] }, (mark: string, out: string) =>
  ['sh', '-c', 'echo half > "$1"; touch "$0"; sleep 60', mark, out])
main(async () => {
  await group('g', async () => {
    slow('began', 'out')
    while (!existsSync('began')) await new Promise(resolve => setTimeout(resolve, 10))
    await cancel('g')
  })
  console.log('went on')
})
`

test('a program that cancels a group with a running command goes on, and ends well', async () => {
  const program = new Program({ 'app.ts': PROGRAM })
  try {
    const { code, out, err } = await program.run('app.ts')
    assert.equal(code, 0, err)
    assert.equal(out, 'went on\n')
    assert.equal(existsSync(program.path('out')), false)
  } finally {
    program.remove()
  }
})
