import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { sh } from '../../src/flow/shell/sh.ts'
import type { ShellCommand, Word } from '../../src/flow/shell/sh.ts'
import { BAIT, EXACT, FRAGMENTS, ONLY_NUMBERS, VALUES } from './sh-contexts.ts'

/** Whatever runs a part of a value leaves a file in here. */
const folder = mkdtempSync(join(tmpdir(), 'millrace-sh-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const SHELLS = ['/bin/bash', '/bin/dash'].filter(shell => existsSync(shell))

const isNumber = (value: string): boolean => /^-?(0|[1-9]\d*)$/.test(value)

/** Null where it was refused. */
function made(make: () => ShellCommand): ShellCommand | null {
  try {
    return make()
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'MR_FLOW_SH', String(error))
    return null
  }
}

function runs(shell: string, command: ShellCommand): { stdout: string; stderr: string } {
  const done = spawnSync(shell, ['-c', command.text], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 20_000,
    input: '',
  })
  const left = readdirSync(folder)
  for (const name of left) rmSync(join(folder, name), { recursive: true, force: true })
  assert.deepEqual(left, [], `${shell} ran a part of a value: ${command.text}`)
  return done
}

for (const [name, { make, prints, isBash }] of Object.entries(EXACT)) {
  test(`a value reaches the program as it is: ${name}`, () => {
    for (const value of VALUES) {
      const command = made(() => make(value))
      if (!command) {
        assert.match(value, /EOF|^-v|^<?\(|^eval$|^if$|'/, `refused: ${JSON.stringify(value)}`)
        continue
      }
      for (const shell of SHELLS) {
        const { stdout, stderr } = runs(shell, command)
        if (!isBash || shell.endsWith('bash'))
          assert.equal(stdout, prints(value), `${shell}: ${command.text}\n${stderr}`)
      }
    }
  })
}

test('where a value would be evaluated, only a number can be put in', () => {
  for (const [name, make] of Object.entries(ONLY_NUMBERS)) {
    for (const value of VALUES) {
      const command = made(() => make(value))
      if (!isNumber(value)) assert.equal(command, null, `${name}: ${command?.text}`)
    }
    const command = made(() => make('7'))
    assert.ok(command, name)
  }
  assert.equal(runs('/bin/bash', sh`echo $((3-${-5})) $((${2}*${3}))`).stdout, '8 6\n')
})

test('a command whose name is a value is none that evaluates its words', () => {
  const hostile = `a[$(${BAIT})]=1`
  for (const name of ['eval', 'let', 'declare', 'printf', 'test', '[[', 'if', 'command', 'unset']) {
    assert.equal(
      made(() => sh`${name} ${hostile}; :`),
      null,
      name,
    )
    assert.equal(
      made(() => sh`${name.slice(0, 2)}${name.slice(2)} ${hostile}; :`),
      null,
      name,
    )
  }
  assert.equal(runs('/bin/bash', sh`${'echo'} ${hostile}; :`).stdout, `${hostile}\n`)
  assert.equal(runs('/bin/bash', sh`${'/bin'}/echo ${hostile}; :`).stdout, `${hostile}\n`)
  // It is no assignment.
  assert.match(runs('/bin/bash', sh`${'A=1'} :; :`).stderr, /not found/)
})

test('nothing that a value contains is run, whatever the text around it', () => {
  const hostile = fc.constantFrom(...VALUES.filter(value => value.includes('ran') || value.includes('\n')))
  const text = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 6 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(fc.array(text, { minLength: 2, maxLength: 3 }), hostile, hostile, (pieces, one, two) => {
      const strings = Object.assign([...pieces], { raw: pieces }) as TemplateStringsArray
      const values: Word[] = [one, two].slice(0, pieces.length - 1)
      const command = made(() => sh(strings, ...values))
      if (command) for (const shell of SHELLS) runsQuietly(shell, command)
    }),
    { numRuns: Number(process.env['MILLRACE_SH_RUNS'] ?? 400) },
  )
})

/** A file may be made by the text itself, under the name of a value: only `ran` shows that one was run. */
function runsQuietly(shell: string, command: ShellCommand): void {
  spawnSync(shell, ['-c', command.text], { cwd: folder, timeout: 5000, input: '' })
  const hasRun = existsSync(join(folder, 'ran'))
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true })
  assert.ok(!hasRun, `${shell} ran a part of a value: ${JSON.stringify(command.text)}`)
}
