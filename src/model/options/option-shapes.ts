import { MillraceError } from '../../core/errors.ts'

interface Shape {
  fits: (given: unknown) => boolean
  words: string
}

const isText = (given: unknown): boolean => typeof given === 'string' && !given.includes('\0')
const isRecord = (given: unknown): boolean =>
  typeof given === 'object' && given !== null && !Array.isArray(given)
const isFunction = (given: unknown): boolean => typeof given === 'function'
const isTextOrNumber = (given: unknown): boolean => isText(given) || Number.isFinite(given)

const SHAPES: Record<string, Shape> = {
  name: { fits: given => isText(given) && given !== '', words: 'a name' },
  label: { fits: isFunction, words: 'a function of the arguments, such as sample => sample.name' },
  cwd: { fits: given => isText(given) && given !== '', words: 'the path of a folder' },
  env: {
    fits: given => isRecord(given) && Object.values(given as object).every(isTextOrNumber),
    words: "an object such as { OMP_NUM_THREADS: '2' }",
  },
  exitCodes: {
    fits: given => Array.isArray(given) && given.every(Number.isInteger),
    words: 'a list of the codes that count as success, such as [0, 1]',
  },
  priority: { fits: Number.isFinite, words: 'a number' },
  tags: {
    fits: given => isText(given) || (Array.isArray(given) && given.every(isText)),
    words: "a name or a list of names, such as ['gpu']",
  },
  storage: { fits: given => isText(given) && given !== '', words: 'the name of a device' },
  temporary: { fits: given => typeof given === 'boolean', words: 'true or false' },
  cache: { fits: given => typeof given === 'boolean', words: 'true or false' },
  key: { fits: isTextOrNumber, words: 'a text or a number' },
  programs: {
    fits: given => Array.isArray(given) && given.every(isText),
    words: "a list of names, such as ['samtools']",
  },
  secret: { fits: given => typeof given === 'boolean', words: 'true or false' },
  limits: { fits: isRecord, words: "an object such as { memory: '2GB' }" },
  defaults: { fits: isRecord, words: 'an object such as { returns: 0 }' },
}

/** What may be given as a function is asked for when it is known. */
const MAY_BE_FUNCTIONS = ['cwd', 'env', 'exitCodes', 'priority', 'tags', 'key']

/** Refuses options that types would have refused, for programs that are not checked. */
export function checkShapes(what: string, options: Readonly<Record<string, unknown>>): void {
  for (const option of Object.keys(SHAPES)) {
    const given = options[option]
    if (given === undefined || (isFunction(given) && MAY_BE_FUNCTIONS.includes(option))) continue
    checkShape(what, option, given)
  }
}

export function checkShape(what: string, option: string, given: unknown): void {
  const { fits, words } = SHAPES[option] as Shape
  if (fits(given)) return
  throw new MillraceError('MR_OPTION', `${what}: ${option} cannot be ${shown(given)}`, {
    hint: `Give ${words}.`,
  })
}

function shown(given: unknown): string {
  try {
    return JSON.stringify(given) ?? typeof given
  } catch {
    return typeof given
  }
}
