import { COMMANDS, HELP } from './commands.ts'
import type { CommandSpec, Machine, OptionSpec } from './spec.ts'

const HELP_COLUMN = 26

export function helpText(): string {
  const lines = [
    'Millrace runs sequential TypeScript in parallel.',
    '',
    'Usage: millrace COMMAND [options]',
    '',
    ...COMMANDS.filter(({ name }) => !name.includes(' ')).map(
      ({ name, summary }) => `  ${name.padEnd(8)} ${summary}`,
    ),
    `  ${'stream'.padEnd(8)} let programs that pass files run at the same time`,
    `  ${'help'.padEnd(8)} all about a command: millrace help run`,
    `  ${'version'.padEnd(8)} the version, also as --version or -V`,
    '',
    'Start with: millrace run app.ts',
    'It shows progress on stderr and keeps a journal and logs in .millrace.',
  ]
  return text(lines)
}

export function streamHelp(): string {
  return text([
    'Usage: millrace stream COMMAND [options]',
    '',
    'Steps that pass files run at once; the files between them become streams.',
    '',
    ...COMMANDS.filter(({ name }) => name.startsWith('stream ')).map(
      ({ name, summary }) => `  ${name.slice('stream '.length).padEnd(8)} ${summary}`,
    ),
    '',
    'All about a command: millrace help stream run. The rules: docs/streaming.md.',
  ])
}

export function commandHelp(command: CommandSpec, machine: Machine): string {
  const lines = [`Usage: ${command.usage}`, '', `${capital(command.summary)}.`, '', 'Options:']
  for (const option of [...command.options, HELP]) lines.push(...optionLines(option, machine))
  if (command.notes.length > 0) lines.push('', ...command.notes)
  return text(lines)
}

function optionLines(option: OptionSpec, machine: Machine): string[] {
  const help = typeof option.help === 'function' ? option.help(machine) : option.help
  const [first = '', ...more] = help
  const name = `  ${spelled(option)}`.padEnd(HELP_COLUMN)
  return [`${name}${first}`, ...more.map(line => ' '.repeat(HELP_COLUMN) + line)]
}

function spelled({ name, short, value, negative }: OptionSpec): string {
  const on = `${short ? `-${short}, ` : ''}--${name}${value === undefined ? '' : ` ${value}`}`
  if (negative === 'only') return `--no-${name}`
  return negative === 'both' ? `${on}, --no-${name}` : on
}

const capital = (sentence: string): string => sentence.slice(0, 1).toUpperCase() + sentence.slice(1)

const text = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
