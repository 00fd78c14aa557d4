import { DECLARES, EVALUATES, RESERVED, RUN_VARIABLE, TAKES_NAME, VALUE, EXPANSION } from './builtins.ts'
import { isProgramText, runsInput } from './interpreters.ts'

/** Where in a command a value stands. */
export interface Spot {
  readonly command: SimpleCommand
  /** Its word; as many words come before it. The words of an assignment or of a redirection have none. */
  readonly word: number | null
  /** What stands before it in its word. */
  readonly before: string
  readonly redirection: string
}

const SUBSCRIPT = /^\w+\[[^\]]*$/
const ASSIGNMENT = /^\w+(?:\[[^\]]*\])?\+?=/

/** Only values and what the shell expands, which may be nothing at all. */
const isHidden = (word: string): boolean => word.replaceAll(VALUE, '').replaceAll(EXPANSION, '') === ''

/** The words of one command, without their quotes, as far as they are known before values are put in. */
export class SimpleCommand {
  readonly words: string[] = []
  /** It reads what another command writes. */
  readonly isPiped: boolean
  /** The word that is being read; null between words. */
  open: string | null = null
  /** The operator whose file comes next, or ''. */
  redirection = ''

  constructor(isPiped: boolean) {
    this.isPiped = isPiped
  }

  /** The first word that is not empty whatever variables and lists contain. */
  get nameAt(): number {
    return Math.max(
      0,
      this.words.findIndex(word => !isHidden(word)),
    )
  }

  get name(): string {
    return (this.words[this.nameAt] ?? '').replaceAll(EXPANSION, '')
  }

  /** In [[ ]], where operators do not end the command. */
  get isInTest(): boolean {
    return this.name === '[[' && this.words.at(-1) !== ']]'
  }

  /** `name=` or `name+=`, after which a bracket begins a list. */
  get isAtList(): boolean {
    return (
      this.open !== null &&
      /^\w+\+?=$/.test(this.open) &&
      (this.words.length === 0 || DECLARES.has(this.name))
    )
  }

  /** In the brackets of `name[…]`, which may be assigned to. */
  get isInSubscript(): boolean {
    const canAssign = this.words.length === 0 || DECLARES.has(this.name)
    return canAssign && this.open !== null && SUBSCRIPT.test(this.open)
  }

  get spot(): Spot {
    const before = this.open ?? ''
    const hasWord = this.redirection === '' && !(this.words.length === 0 && ASSIGNMENT.test(before))
    const word = hasWord ? this.words.length : null
    return { command: this, word, before, redirection: this.redirection }
  }

  add(text: string): void {
    this.open = (this.open ?? '') + text
  }

  endWord(): void {
    const word = this.open
    this.open = null
    if (word === null) return
    if (this.redirection !== '') this.redirection = ''
    else if (this.words.length > 0) this.words.push(word)
    else if (!RESERVED.has(word) && !ASSIGNMENT.test(word)) this.words.push(word)
  }
}

/** Why only a number can be put in at this place, or null. All words of the command are known by now. */
export function evaluated({ command, word: at, before, redirection }: Spot): string | null {
  const { name, nameAt } = command
  const words = command.words.slice(nameAt)
  const word = at === null ? null : Math.max(0, at - nameAt)
  if (redirection.endsWith('&')) return 'names a descriptor'
  if (redirection === '<<<') return runsInput(words) ? 'is read as a program' : null
  if (redirection !== '') return null
  if (SUBSCRIPT.test(before) && (word === null || word === 0)) return 'is a subscript, which is evaluated'
  if (RUN_VARIABLE.test(before)) return 'becomes the value of a variable that shells run or expand'
  if (word === null || word === 0) return null
  if (name === '[[') return 'stands in [[ ]], which evaluates some of its words; use [ ]'
  if (EVALUATES.has(name)) return `is a word for ${name}, which evaluates it`
  if (TAKES_NAME.has(name) && (word === 1 || name === 'function')) return `stands where ${name} takes a name`
  if (DECLARES.has(name)) return declared(words, word, before)
  if (name === 'set')
    return words[1] === '--' && word > 1 ? null : 'may be an option of set; write set -- first'
  if (name === 'test' || name === '[') return tested(words, word, before)
  if (name === 'printf') return printed(words, word, before)
  return isProgramText(words, word) ? 'stands in the text of a program, which would read it as its own' : null
}

function declared(words: readonly string[], word: number, before: string): string | null {
  const options = words.slice(1, word).filter(one => /^[-+]/.test(one))
  const isPlain = options.every(one => /^[-+][xrgp]*$/.test(one)) && /^\w+\+?=/.test(before)
  return isPlain ? null : `is a word for ${words[0]}, which may evaluate it`
}

function tested(words: readonly string[], word: number, before: string): string | null {
  const isName = before.startsWith('-') || /^-[vR]$/.test(words[word - 1] ?? '')
  return isName ? 'may be the name of a variable, which is evaluated' : null
}

function printed(words: readonly string[], word: number, before: string): string | null {
  const first = words.slice(1, word).find(one => !isHidden(one))
  const isName = first === undefined ? before.startsWith('-') : first.startsWith('-') && first !== '--'
  return isName ? 'may be the name of a variable, which is evaluated' : null
}

/** What is wrong with this very value there, or null. */
export function mistaken({ command, word, before }: Spot, value: string): string | null {
  const { name, nameAt, words } = command
  if (word !== null && word <= nameAt)
    return namesEvaluator(words[word] ?? VALUE, value) ? 'would be a command that evaluates its words' : null
  if ((name === 'test' || name === '[') && before === '' && /^-[vR]$/.test(value))
    return 'would be an operator that evaluates what follows'
  const isFirst = words.slice(nameAt + 1, word ?? 0).every(isHidden)
  if (name === 'printf' && isFirst && before === '' && value.startsWith('-'))
    return 'would be an option of printf'
  if (DECLARES.has(name) && before.endsWith('=') && value.startsWith('('))
    return 'would be a list, which is evaluated'
  return null
}

/** The name of a command that is put together from values can be one of the shell's own. */
function namesEvaluator(name: string, value: string): boolean {
  const all = [...EVALUATES, ...DECLARES, 'test', '[', '[[', 'printf', 'set']
  if (name === VALUE) return all.includes(value) || RESERVED.has(value)
  if (name.includes('/')) return false
  const parts = name
    .replaceAll(EXPANSION, VALUE)
    .split(VALUE)
    .map(part => part.replaceAll(/[^\w]/g, String.raw`\$&`))
  const form = new RegExp(`^${parts.join('.*')}$`)
  return all.some(one => form.test(one))
}
