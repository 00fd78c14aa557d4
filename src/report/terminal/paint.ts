/** Colours by meaning, and symbols with an ASCII form. Without colour every state is still a word. */
export interface Paint {
  good: (text: string) => string
  bad: (text: string) => string
  warn: (text: string) => string
  dim: (text: string) => string
  strong: (text: string) => string
  readonly ellipsis: string
  readonly pointer: string
  readonly times: string
}

/**
 * Codes of our own, because colour libraries ask the process whether it has colours, while here the caller
 * says so: for this stream, with these options.
 */
export function createPaint(color: boolean, unicode: boolean): Paint {
  const code =
    (open: number, close: number) =>
    (text: string): string =>
      color && text !== '' ? `\u001b[${open}m${text}\u001b[${close}m` : text
  return {
    good: code(32, 39),
    bad: code(31, 39),
    warn: code(33, 39),
    dim: code(2, 22),
    strong: code(1, 22),
    ellipsis: unicode ? '…' : '...',
    pointer: unicode ? '▸' : '>',
    times: unicode ? '×' : 'x',
  }
}
