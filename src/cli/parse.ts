import { MillraceError } from '../core/errors.ts'
import { nearest } from '../general/nearest.ts'
import { parseBytes, parseCount } from '../general/units.ts'
import { HELP } from './commands.ts'
import type { CommandSpec, Given, OptionSpec } from './spec.ts'

/** Its value may be left out: then it is the first of its choices. */
const isOptional = ({ value }: OptionSpec): boolean => value?.startsWith('[') ?? false

interface Found {
  option: OptionSpec
  isOn: boolean
}

/** Reads the words after the name of a command. Throws what a person should read. */
export function parse(command: CommandSpec, words: readonly string[]): Given {
  const flags = new Map<string, boolean>()
  const values = new Map<string, string[]>()
  const operands: string[] = []
  let rest: readonly string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string
    if (word === '--') {
      rest = words.slice(i + 1)
      break
    }
    if (!word.startsWith('-') || word === '-') {
      operands.push(word)
      continue
    }
    const [name, inline] = splitValue(command, word)
    const { option, isOn } = find(command, name)
    if (option.value === undefined || (option.isOptional && inline === undefined)) {
      if (inline !== undefined) throw bad(command, `${name} takes no value`)
      flags.set(option.name, isOn)
      continue
    }
    const next = words[i + 1]
    if (isOptional(option) && inline === undefined && !option.choices?.includes(next ?? '')) {
      values.set(option.name, [option.choices?.[0] ?? ''])
      continue
    }
    if (inline === undefined && next !== undefined && !next.startsWith('-')) i++
    const value = inline ?? (next?.startsWith('-') ? undefined : next)
    if (!value) throw bad(command, `${name} needs a value: ${name} ${option.value}`, choicesOf(option))
    check(command, option, value)
    values.set(option.name, option.repeatable ? [...(values.get(option.name) ?? []), value] : [value])
  }
  const given = { flags, values, operands, rest }
  if (!flags.get('help')) checkOperands(command, given)
  return given
}

/** `--name=value`, or `-n4` for short names that take a value. */
function splitValue(command: CommandSpec, word: string): [string, string | undefined] {
  const isShort = command.options.some(
    ({ short, value }) => short !== undefined && value !== undefined && word.startsWith(`-${short}`),
  )
  if (isShort && word.length > 2) return [word.slice(0, 2), word.slice(word[2] === '=' ? 3 : 2)]
  const at = word.indexOf('=')
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

function spellings(option: OptionSpec): { text: string; isOn: boolean }[] {
  const all: { text: string; isOn: boolean }[] = []
  if (option.negative !== 'only') all.push({ text: `--${option.name}`, isOn: true })
  if (option.negative) all.push({ text: `--no-${option.name}`, isOn: false })
  if (option.short) all.push({ text: `-${option.short}`, isOn: true })
  return all
}

function find(command: CommandSpec, name: string): Found {
  const known: string[] = []
  for (const option of [...command.options, HELP]) {
    for (const { text, isOn } of spellings(option)) {
      if (text === name) return { option, isOn }
      known.push(text)
    }
  }
  const close = nearest(name, known)
  const meant = close ? `; did you mean ${close}?` : ''
  const own =
    command.name === 'run'
      ? `Options of your program come after --, as in: ${command.usage.split(' [')[0]} -- ${name}`
      : undefined
  throw bad(command, `${command.name} has no option ${name}${meant}`, close ? undefined : own)
}

function check(command: CommandSpec, option: OptionSpec, value: string): void {
  const name = `--${option.name}`
  if (option.kind === 'choice' && !option.choices?.includes(value)) {
    const close = nearest(value, option.choices ?? [])
    const meant = close ? `; did you mean ${close}?` : ''
    throw bad(command, `${name} cannot be '${value}'${meant}`, choicesOf(option))
  }
  if (option.kind === 'count' && !((parseCount(value) ?? 0) >= 1)) {
    throw new MillraceError('MR_UNIT', `${name} is '${value}', which is not a whole number from 1`, {
      hint: `Write for instance ${name} 2.`,
    })
  }
  if (option.kind === 'size' && !((parseBytes(value) ?? 0) >= 1)) {
    throw new MillraceError('MR_UNIT', `${name} is '${value}', which is not a size`, {
      hint: 'Write a number with a unit: 512MB, 16GB, 1.5GiB.',
    })
  }
}

function checkOperands(command: CommandSpec, { operands, rest }: Given): void {
  const missing = command.operands.find((operand, index) => operand.required && operands[index] === undefined)
  if (missing) throw bad(command, `${command.name} needs a ${missing.name}`)
  if (command.operands.some(operand => operand.rest)) return
  const extra = operands[command.operands.length] ?? rest[0]
  if (extra !== undefined) throw bad(command, `${command.name} does not know what to do with '${extra}'`)
}

const choicesOf = ({ name, choices }: OptionSpec): string | undefined =>
  choices && `--${name} is one of ${choices.join(', ')}.`

function bad(command: CommandSpec, message: string, hint?: string): MillraceError {
  return new MillraceError('MR_OPTION', message, {
    hint: hint ?? `Usage: ${command.usage}. More: millrace help ${command.name}.`,
  })
}
