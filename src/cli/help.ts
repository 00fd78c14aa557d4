import { COMMANDS, HELP } from './commands.ts'
import type { CommandSpec, Machine, OptionSpec } from './spec.ts'

const HELP_COLUMN = 26

export function helpText(): string {
  const lines = [
    'Millrace runs sequential TypeScript in parallel.',
    'Usage: millrace COMMAND [options]',
    '',
    ...COMMANDS.filter(({ name }) => !name.includes(' ')).map(
      ({ name, summary }) => `  ${name.padEnd(9)} ${summary}`,
    ),
    `  ${'stream'.padEnd(9)} let programs that pass files run at the same time`,
    `  ${'help'.padEnd(9)} all about a command: millrace help run`,
    `  ${'version'.padEnd(9)} the version, also as --version or -V`,
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
      ({ name, summary }) => `  ${name.slice('stream '.length).padEnd(9)} ${summary}`,
    ),
    '',
    'All about a command: millrace help stream run. The rules: docs/streaming.md.',
  ])
}

/** On one screen; options that few people need are on a second one. */
export function commandHelp(command: CommandSpec, machine: Machine, all = false): string {
  const rare = command.options.filter(({ isRare }) => isRare)
  const lines = [`Usage: ${command.usage}`, '']
  if (all && rare.length > 0) {
    lines.push(`More options of millrace ${command.name}:`)
    for (const option of rare) lines.push(...optionLines(option, machine))
    return text(lines)
  }
  lines.push(`${capital(command.summary)}.`, '', 'Options:')
  const usual = command.options.filter(({ isRare }) => !isRare)
  for (const option of [...usual, HELP]) lines.push(...optionLines(option, machine))
  const more = rare.length > 0 ? [`More options: millrace help ${command.name} --all`] : []
  if (command.notes.length + more.length > 0) lines.push('', ...more, ...command.notes)
  return text(lines)
}

function optionLines(option: OptionSpec, machine: Machine): string[] {
  const help = typeof option.help === 'function' ? option.help(machine) : option.help
  const [first = '', ...more] = help
  const name = `  ${spelled(option)}`.padEnd(HELP_COLUMN)
  return [`${name}${first}`, ...more.map(line => ' '.repeat(HELP_COLUMN) + line)]
}

function spelled({ name, short, value, negative, isOptional }: OptionSpec): string {
  if (isOptional) return `--${name}[=${value}]`
  const on = `${short ? `-${short}, ` : ''}--${name}${value === undefined ? '' : ` ${value}`}`
  if (negative === 'only') return `--no-${name}`
  return negative === 'both' ? `${on}, --no-${name}` : on
}

const capital = (sentence: string): string => sentence.slice(0, 1).toUpperCase() + sentence.slice(1)

const text = (lines: readonly string[]): string => lines.map(line => `${line}\n`).join('')
