import { availableParallelism, totalmem } from 'node:os'
import { MillraceError } from '../core/errors.ts'
import { nearest } from '../general/nearest.ts'
import { COMMANDS } from './commands.ts'
import { endWithoutOutput, outliveOutput } from './lost-output.ts'
import { parse } from './parse.ts'
import { exitCodeOf, explain } from './problem.ts'
import type { CommandSpec } from './spec.ts'

/** The command line. Sets the exit code instead of leaving, so that output gets out. */
export async function main(words: readonly string[]): Promise<void> {
  try {
    await dispatch(words)
  } catch (error) {
    process.stderr.write(explain(error))
    process.exitCode = exitCodeOf(error)
  }
}

async function dispatch(all: readonly string[]): Promise<void> {
  const [name, ...words] = joinStream(all)
  // A run must not end because its output has no reader.
  if (name === 'make' || name === 'run') outliveOutput()
  else endWithoutOutput()
  if (name === undefined) {
    // Nothing was asked for: that helps a person, and must not pass for success in a script.
    process.stderr.write(await helpFor())
    process.exitCode = 2
    return
  }
  if (name === 'help' || name === '--help' || name === '-h') {
    const asked = words.filter(word => word !== '--all')
    const topic = asked.length === 1 ? asked[0] : joinStream(asked)[0]
    process.stdout.write(await helpFor(topic, asked.length < words.length))
    return
  }
  const command = findCommand(name)
  const given = parse(command, words)
  if (given.flags.get('help')) {
    process.stdout.write(await helpFor(name))
    return
  }
  const { execute } = await command.load()
  await execute(given, name)
}

/** `stream check` is one name in two words. */
function joinStream(words: readonly string[]): readonly string[] {
  const [first, second, ...rest] = words
  if (first !== 'stream') return words
  if (second === undefined || second === '--help' || second === '-h') return ['help', 'stream']
  return [`stream ${second}`, ...rest]
}

function findCommand(name: string): CommandSpec {
  const found = COMMANDS.find(command => command.name === name)
  if (found) return found
  const names = [...COMMANDS.map(command => command.name), 'help', 'version']
  const what = name.startsWith('-') ? 'option' : 'command'
  const close = nearest(name, what === 'option' ? ['--help', '--version', '-h', '-V'] : names)
  const isProgram = /\.[cm]?[jt]sx?$/.test(name)
  const meant = isProgram ? `millrace run ${name}` : close && `millrace ${close}`
  throw new MillraceError(
    'MR_OPTION',
    `there is no ${what} ${name}${meant ? `; did you mean \`${meant}\`?` : ''}`,
    { hint: `Commands: ${names.join(', ')}.` },
  )
}

async function helpFor(name?: string, all = false): Promise<string> {
  const { commandHelp, helpText, streamHelp } = await import('./help.ts')
  if (name === undefined || name === 'help' || name === 'version') return helpText()
  if (name === 'stream') return streamHelp()
  const { formatBytes } = await import('../report/format.ts')
  const machine = { cpus: availableParallelism(), memory: formatBytes(totalmem()).replace(' ', '') }
  return commandHelp(findCommand(name), machine, all)
}
