import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS, POLICY_NAMES, PROGRESS_MODES } from '../../src/cli/commands.ts'
import { commandHelp, helpText } from '../../src/cli/help.ts'
import { POLICIES } from '../../src/core/schedule/policy.ts'
import { MODES } from '../../src/report/terminal/terminal-mode.ts'
import { makeFolder, millrace } from './folder.ts'

const machine = { cpus: 8, memory: '31.2GiB' }
const pages = new Map([
  ['millrace', helpText()],
  ...COMMANDS.map(command => [command.name, commandHelp(command, machine)] as const),
  ...COMMANDS.filter(({ options }) => options.some(({ isRare }) => isRare)).map(
    command => [`${command.name} --all`, commandHelp(command, machine, true)] as const,
  ),
])

test('help of each command is what a person has looked at', () => {
  const path = join(import.meta.dirname, 'help.golden')
  const all = [...pages].map(([name, text]) => `=== ${name}\n${text}`).join('')
  if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(path, all)
  assert.equal(all, readFileSync(path, 'utf8'))
})

for (const [name, text] of pages) {
  test(`help of ${name} fits on a screen of 80 x 24`, () => {
    const lines = text.trimEnd().split('\n')
    assert.ok(lines.length <= 24, `${lines.length} lines`)
    for (const line of lines) assert.ok(line.length <= 80, line)
  })
}

test('help lists the policies and modes that there are', () => {
  assert.deepEqual(
    POLICY_NAMES,
    POLICIES.map(policy => policy.name),
  )
  assert.deepEqual(PROGRESS_MODES, MODES)
})

test('help can be asked for in every way, with the defaults of this machine', async () => {
  const folder = makeFolder({})
  const pagesOfRun = await Promise.all(
    [
      ['help', 'run'],
      ['run', '--help'],
      ['run', 'app.ts', '-h'],
    ].map(args => millrace(folder, args)),
  )
  for (const { code, stdout, stderr } of pagesOfRun) {
    assert.equal(code, 0)
    assert.equal(stderr, '')
    assert.match(stdout, new RegExp(`CPUs that tasks may use \\(default: ${availableParallelism()}, all\\)`))
  }
  const rare = await millrace(folder, ['help', 'make', '--all'])
  assert.match(rare.stdout, /--force-rule RULE/)
  const general = await millrace(folder, ['--help'])
  assert.equal(general.stdout, helpText())
  const nothing = await millrace(folder, [])
  assert.deepEqual(nothing, { code: 2, stdout: '', stderr: helpText() })
})

test('the version is that of the package', async () => {
  const text = readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')
  const { version } = JSON.parse(text) as { version: string }
  const folder = makeFolder({})
  const found = await Promise.all(['--version', '-V', 'version'].map(word => millrace(folder, [word])))
  for (const ended of found) assert.deepEqual(ended, { code: 0, stdout: `${version}\n`, stderr: '' })
})
