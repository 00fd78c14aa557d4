import { basename } from 'node:path'
import { EXPANSION, VALUE } from './builtins.ts'

const SHELLS = /^(?:sh|bash|dash|ash|ksh|zsh|fish|busybox)$/
/** They give what follows `-c` to a shell. */
const STARTERS = /^(?:flock|script|su|runuser|sg)$/
/** They run a file in this shell. */
const SOURCES = /^(?:\.|source)$/
const LANGUAGES = /^(?:python|perl|ruby|node|nodejs|R|Rscript|php|lua|julia|deno|bun|tclsh)[\d.]*$/
const FILTERS = /^(?:[gmn]?awk|g?sed)$/

/** Options after which a program stands as text. */
const SHELL_TEXT = /^-[a-zA-Z]*c[a-zA-Z]*$/
const LANGUAGE_TEXT = /^(?:-\w*[ceE]|-[pr]|--(?:eval|expression|print|command))$/
const AWK_OPTION = /^-(?:[vFfilE]|-assign|-file|-field-separator)$/
const SED_OPTION = /^-(?:[fl]|-file|-line-length)$/

/** Options of tar that name a command. */
const TAR_TEXT =
  /^--(?:checkpoint-action|to-command|use-compress-program|rsh-command|(?:info|new-volume)-script)=/

const isUnknown = (word: string): boolean => word.includes(VALUE) || word.includes(EXPANSION)

/** The shell may find nothing there. */
const isExpansion = (word: string): boolean => word.replaceAll(EXPANSION, '') === ''

/** A word of this command, whole or in part a value, is text that a program runs as its own. */
export function isProgramText(words: readonly string[], at: number): boolean {
  const isMixed = words[at] !== VALUE
  for (let i = 0; i < at; i++) {
    const program = basename(words[i] as string)
    const between = words.slice(i + 1, at)
    if ((SHELLS.test(program) || STARTERS.test(program)) && isShellText(between)) return true
    if (program === 'tar' && TAR_TEXT.test(words[at] as string)) return true
    if (!isMixed) continue
    if (FILTERS.test(program) && isFilterText(program, between, words[at] as string)) return true
    if (LANGUAGES.test(program) || (i === 0 && isUnknown(program))) {
      if (LANGUAGE_TEXT.test(between.at(-1) ?? '') || /^-[ceE]./.test(words[at] as string)) return true
    }
  }
  return false
}

/** `sh -c`, and nothing but options since. */
function isShellText(between: readonly string[]): boolean {
  const flag = between.findIndex(word => SHELL_TEXT.test(word))
  if (flag < 0) return false
  return between
    .slice(flag + 1)
    .every(
      (word, i, all) => /^[-+]/.test(word) || isExpansion(word) || /^[-+]\w*[oO]$/.test(all[i - 1] ?? ''),
    )
}

/** The first word that is no option, or what follows -e. */
function isFilterText(program: string, between: readonly string[], word: string): boolean {
  if (/^(?:-e|--expression|--source)$/.test(between.at(-1) ?? '')) return true
  if (/^(?:-\w*e.|--expression=|--source=)/.test(word)) return true
  const takesWord = program.endsWith('awk') ? AWK_OPTION : SED_OPTION
  if (word.startsWith('-') || takesWord.test(between.at(-1) ?? '')) return false
  const operands = between.filter(
    (one, i) => !one.startsWith('-') && !isExpansion(one) && !takesWord.test(between[i - 1] ?? ''),
  )
  return operands.length === 0 && !between.some(one => /^-(?:[ef]|-file|-expression|-source)/.test(one))
}

/** The command runs the files that it is given. */
export const isInterpreter = (word: string): boolean =>
  SOURCES.test(word) || SHELLS.test(basename(word)) || LANGUAGES.test(basename(word))

/** The command runs what it reads. */
export function runsInput(words: readonly string[]): boolean {
  return words.some((word, i) => {
    const program = basename(word)
    const rest = words.slice(i + 1)
    if (SOURCES.test(word) && i === 0) return rest.some(one => one === '/dev/stdin' || one === '-')
    if (program === 'make' || program === 'gmake') return rest.includes('-f') && rest.includes('-')
    if (!SHELLS.test(program) && !LANGUAGES.test(program)) return false
    if (rest.some(one => one === '-' || one === '-s' || one === '/dev/stdin')) return true
    return rest.every(one => one.startsWith('-') && !SHELL_TEXT.test(one) && !LANGUAGE_TEXT.test(one))
  })
}
