import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { flowState } from './registry.ts'

type Simple = string | number | boolean

/**
 * A parameter from the command line (`millrace make -- quality=3`), of the type of its default. Without a default
 * it has to be given.
 */
export function param(name: string): string
export function param<T extends Simple>(
  name: string,
  standard: T,
): T extends string ? string : T extends number ? number : boolean
export function param(name: string, standard?: Simple): Simple {
  const given = flowState.given.get(name)
  if (given === undefined && standard === undefined) {
    throw new MillraceError('MR_FLOW_PARAM', `the workflow needs a parameter ${name}`, {
      hint: `Give it: millrace make -- ${name}=VALUE`,
    })
  }
  const value = given === undefined ? (standard as Simple) : typed(name, given, standard)
  flowState.asked.set(name, String(value))
  return value
}

function typed(name: string, given: string, standard: Simple | undefined): Simple {
  if (typeof standard === 'number') {
    const number = Number(given)
    if (given.trim() !== '' && Number.isFinite(number)) return number
    throw new MillraceError('MR_FLOW_PARAM', `the parameter ${name} is '${given}', not a number`)
  }
  if (typeof standard === 'boolean') {
    if (['1', 'true', 'yes', 'on'].includes(given)) return true
    if (['0', 'false', 'no', 'off'].includes(given)) return false
    throw new MillraceError('MR_FLOW_PARAM', `the parameter ${name} is '${given}', not true or false`)
  }
  return given
}

const byName = (get: (name: string) => string): Readonly<Record<string, string>> =>
  new Proxy({} as Record<string, string>, {
    get: (_target, name) => (typeof name === 'string' ? get(name) : undefined),
    has: (_target, name) => typeof name === 'string' && flowState.given.has(name),
    ownKeys: () => [...flowState.given.keys()],
    getOwnPropertyDescriptor: (_target, name) =>
      typeof name === 'string' && flowState.given.has(name)
        ? { value: get(name), enumerable: true, configurable: true }
        : undefined,
  })

/** Parameters by name, as text; what is read counts as asked for. */
export const parameters = byName(name => param(name))

/** The same for functions of rules. Which of them are called is another thing in each run. */
export const parametersOfTasks = byName(name => {
  flowState.read.add(name)
  return flowState.given.get(name) ?? flowState.asked.get(name) ?? param(name)
})

/**
 * What a function may depend on, as far as is known now: parameters with the values that the workflow got, whatever else
 * was given, and the files of settings and tables that it read.
 */
export const knownParameters = (): string => {
  const known = JSON.stringify([...new Map([...flowState.given, ...flowState.asked])].sort())
  return flowState.data.size === 0 ? known : `${known}${JSON.stringify([...flowState.data].sort())}`
}

export const unaskedParameters = (): string[] =>
  [...flowState.given.keys()].filter(name => !flowState.asked.has(name) && !flowState.read.has(name))

/**
 * A mistyped name would make everything anew with the default. Functions may ask for a parameter later, so it is
 * a mistake for certain only where the file does not have the name at all.
 */
export function checkParameters(source: string): void {
  for (const name of unaskedParameters()) {
    const close = nearest(name, flowState.asked.keys())
    if (!close || source.includes(name)) continue
    throw new MillraceError(
      'MR_FLOW_PARAM',
      `the workflow has no parameter ${name}; did you mean ${close}?`,
      {
        hint: `It asks for ${[...flowState.asked.keys()].join(', ')}.`,
      },
    )
  }
}

/** `key=value` words of the command line. */
export function giveParameters(words: readonly string[]): void {
  for (const word of words) {
    const at = word.indexOf('=')
    if (at < 1) {
      throw new MillraceError('MR_OPTION', `'${word}' is not a parameter`, {
        hint: 'Write NAME=VALUE, as in: millrace make -- quality=3',
      })
    }
    flowState.given.set(word.slice(0, at), word.slice(at + 1))
  }
}
