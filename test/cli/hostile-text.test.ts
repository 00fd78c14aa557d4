import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { clean, escapeUnseen, printable } from '../../src/report/text.ts'
import { makeFolder, millrace } from './folder.ts'
import type { Ended } from './folder.ts'

/** Sets the title, clears the screen, goes back over the line, colours, turns text around. */
const HOSTILE = '\u001b]0;owned\u0007\u001b[2J\rhidden\u001b[31m\u202egnp.exe\u2066\u009b1m'

const PROGRAM = `
import { main, task, waitOn } from 'millrace'
const hostile = ${JSON.stringify(HOSTILE)}
export const bad = task({ name: 'bad' + hostile, onFailure: 'cancelSuccessors' }, () => {
  console.log('printed ' + hostile)
  throw new Error('message ' + hostile)
})
export const next = task({ name: 'next' + hostile }, one => one)
main(async () => {
  await waitOn(next(bad()))
})
`

const FLOW = `
import { rule, sh, target } from 'millrace/flow'
const hostile = ${JSON.stringify(HOSTILE)}
rule('out' + hostile, ['missing'], ({ out }) => sh\`echo \${hostile} > \${out}\`)
rule('made', [], ({ out }) => sh\`printf '%s' \${hostile} >&2; false > \${out}\`)
target('all', ['made'])
`

/** Everything but text, line ends, tabs and our colours. */
const RAW =
  // oxlint-disable-next-line no-control-regex -- control characters are what this finds
  /\u001b(?!\[(?:[12]|22|3[1239])m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/

function assertPlain(what: string, { stdout, stderr }: Ended): void {
  for (const text of [stdout, stderr]) {
    const at = text.search(RAW)
    assert.equal(at, -1, `${what}: ${JSON.stringify(text.slice(Math.max(0, at - 60), at + 20))}`)
  }
}

test('nothing but text, line ends, tabs and our own colours goes through', () => {
  assert.equal(printable('a\tb\r\nc\u001b[32md\u001b[39m'), 'a\tb\nc\u001b[32md\u001b[39m')
  assert.doesNotMatch(printable(`x${HOSTILE}`).replaceAll('\u001b[31m', ''), RAW)
  assert.doesNotMatch(clean(HOSTILE), RAW)
  assert.deepEqual(JSON.parse(escapeUnseen(JSON.stringify({ [HOSTILE]: HOSTILE }))), { [HOSTILE]: HOSTILE })
})

describe('no text from outside reaches the terminal raw', () => {
  const folder = makeFolder({ 'app.mjs': PROGRAM, 'flow.ts': FLOW })
  let name = ''

  before(async () => {
    // What the program itself prints is its own.
    assertPlain('run', { ...(await millrace(folder, ['run', 'app.mjs'])), stdout: '' })
    name = readdirSync(join(folder, '.millrace/runs'))[0] ?? ''
  })

  const commands: readonly (readonly string[])[] = [
    ['runs'],
    ['runs', '--json'],
    ['show'],
    ['show', `no${HOSTILE}`],
    ['story', '1'],
    ['story', '2'],
    ['story', `bad${HOSTILE}`],
    ['explain'],
    ['events'],
    [`none${HOSTILE}`],
    ['run', `none${HOSTILE}.mjs`],
    ['run', 'app.mjs', `--none${HOSTILE}`],
    ['make', '-n', `out${HOSTILE}`],
    ['make', `none${HOSTILE}`],
    ['make'],
    ['make', '-n', '--explain'],
    ['simulate', `none${HOSTILE}.json`],
    ['simulate', 'hostile.json'],
    ['stream', 'check', `none${HOSTILE}.json`],
    ['stream', 'check', 'stream.json'],
    ['stream', 'run', 'stream.json'],
    ['stream', 'ps', HOSTILE],
  ]
  for (const args of commands) {
    test(escapeUnseen(JSON.stringify(args)), async () => {
      assert.notEqual(name, '')
      writeFileSync(
        join(folder, 'hostile.json'),
        JSON.stringify({
          name: HOSTILE,
          schemaVersion: HOSTILE,
          workflow: { [HOSTILE]: 1, tasks: [{ name: HOSTILE }] },
        }),
      )
      writeFileSync(
        join(folder, 'stream.json'),
        JSON.stringify({
          name: HOSTILE,
          IO_Graph: [{ name: HOSTILE, [HOSTILE]: 1, input_stream: [HOSTILE] }],
        }),
      )
      assertPlain(args.join(' '), await millrace(folder, args))
    })
  }
})
