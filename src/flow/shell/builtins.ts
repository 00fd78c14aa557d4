/** Stands for a value that is put in, in the text of a word. */
export const VALUE = '\0'
/** Stands for what the shell itself expands. */
export const EXPANSION = '\u0001'

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '))

/** Builtins that run their words, or take them for names of variables, whose subscripts they evaluate. */
export const EVALUATES = words(
  'let eval read mapfile readarray unset trap alias getopts compgen complete compopt bind jobs fc enable coproc ' +
    'wait ssh su parallel watch',
)

/** Variables whose values the shell, or one that is started later, expands or runs; before the value stands `name=`. */
export const RUN_VARIABLE = /^(?:PS[0-4]|PROMPT_COMMAND|BASH_ENV|ENV)\+?=/

/** Builtins that take assignments. */
export const DECLARES = words('export readonly local declare typeset')

/** After these comes the name of a variable or a function. */
export const TAKES_NAME = words('for select function')

/** Words after which a command begins. */
export const RESERVED = words('if then elif else while until do { } ! time command builtin exec')
