/** A message longer than this is cut where it is shown and written down; the error itself keeps all of it. */
const LONGEST = 64 * 1024
/** An error keeps as many causes when it is made anew. */
const CAUSES = 20

/** A property of any thrown value; its getters may throw, too. */
export function fieldOf(thrown: unknown, name: string): unknown {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }
}

export function textFieldOf(thrown: unknown, name: string): string | undefined {
  const text = fieldOf(thrown, name)
  return typeof text === 'string' ? text : undefined
}

/** A revoked proxy cannot even be asked. */
export function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error
  } catch {
    return false
  }
}

/** A text for any thrown value; never empty, and never too long to be shown. */
export function messageOf(thrown: unknown): string {
  const text = isError(thrown) ? (textFieldOf(thrown, 'message') ?? '') : shown(thrown)
  if (text !== '') return shorten(text)
  return isError(thrown) ? `${nameOf(thrown)} without a message` : "'' (an empty text)"
}

export const shorten = (text: string): string =>
  text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}… (${text.length} characters)`

/** What kind of thing was thrown. */
export function nameOf(thrown: unknown): string {
  return isError(thrown) ? (textFieldOf(thrown, 'name') ?? 'Error') : typeof thrown
}

function shown(thrown: unknown): string {
  try {
    const text = String(thrown)
    return text === '[object Object]' ? (contentOf(thrown) ?? text) : text
  } catch {
    return `a value of type ${typeof thrown} that cannot be shown`
  }
}

/** A plain object says more by what is in it. */
function contentOf(thrown: unknown): string | undefined {
  try {
    return JSON.stringify(thrown)
  } catch {
    return undefined
  }
}

/** Causes of causes: a chain this long goes nowhere, and takes the stack of everything that follows it. */
export function hasManyCauses(thrown: unknown): boolean {
  let error = thrown
  for (let i = 0; i < CAUSES; i++) {
    if (!isError(error)) return false
    error = fieldOf(error, 'cause')
  }
  return isError(error)
}

/** The like of what was thrown, without anything that cannot be read, shown or sent. */
export function plainError(thrown: unknown, causes = CAUSES): Error {
  const error = new Error(messageOf(thrown))
  const name = textFieldOf(thrown, 'name')
  if (isError(thrown) && name !== undefined) error.name = name
  error.stack = shorten(textFieldOf(thrown, 'stack') ?? '')
  const cause = fieldOf(thrown, 'cause')
  if (isError(cause) && causes > 0) error.cause = plainError(cause, causes - 1)
  const code = textFieldOf(thrown, 'code')
  return code === undefined ? error : Object.assign(error, { code })
}
