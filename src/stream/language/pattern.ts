/**
 * Names and wildcards of the coordination language. As in CAPIO, `*` and `?` match `/` too, so that `dir/*`
 * covers everything below `dir`. `[a-z]`, `[!a-z]` and `\` work as in a shell; brace lists are expanded
 * before, as Bash does. Matching is by byte, as in the library that enforces it: the two must never differ.
 */
type Ranges = readonly (readonly [number, number])[]

/** `many` is `*`; all else takes exactly one byte out of `ranges`. */
type Token = { many: true } | { many: false; ranges: Ranges }

export interface Pattern {
  /** As written, made regular: no leading `./`, no double or closing `/`. */
  readonly text: string
  /** The one name that it matches, when it has no wildcard. */
  readonly literal: string | undefined
  /** Empty when there is no wildcard: configurations that a program wrote hold thousands of plain names. */
  readonly tokens: readonly Token[]
}

const LAST = 0xff
const ANY: Ranges = [[0, LAST]]

const bytesOf = (text: string): number[] => [...Buffer.from(text)]

const STAR = 0x2a
const QUESTION = 0x3f
const OPEN = 0x5b
const CLOSE = 0x5d
const BACKSLASH = 0x5c
const DASH = 0x2d
const NOT = [0x21, 0x5e]

export function compilePattern(written: string): Pattern {
  const text = regularName(written)
  if (!/[*?[\\]/.test(text)) return { text, literal: text, tokens: [] }
  const bytes = bytesOf(text)
  const tokens: Token[] = []
  const plain: number[] = []
  let wild = false
  for (let i = 0; i < bytes.length; i++) {
    let byte = bytes[i]!
    const set = byte === OPEN ? readSet(bytes, i) : undefined
    if (byte === STAR) {
      if (tokens.at(-1)?.many !== true) tokens.push({ many: true })
      wild = true
    } else if (byte === QUESTION) {
      tokens.push({ many: false, ranges: ANY })
      wild = true
    } else if (set !== undefined) {
      tokens.push({ many: false, ranges: set.ranges })
      i = set.end
      wild = true
    } else {
      if (byte === BACKSLASH && i + 1 < bytes.length) byte = bytes[++i]!
      tokens.push({ many: false, ranges: [[byte, byte]] })
      plain.push(byte)
    }
  }
  if (!wild) return { text, literal: Buffer.from(plain).toString(), tokens: [] }
  return { text, literal: undefined, tokens }
}

/** The set that opens at `start`, or undefined when it never closes: then `[` means itself, as in a shell. */
function readSet(bytes: number[], start: number): { ranges: Ranges; end: number } | undefined {
  let i = start + 1
  const negated = NOT.includes(bytes[i] ?? 0)
  if (negated) i++
  const ranges: [number, number][] = []
  for (let first = true; ; first = false) {
    if (i >= bytes.length) return undefined
    if (bytes[i] === CLOSE && !first) break
    const low = bytes[i++]!
    if (bytes[i] === DASH && i + 1 < bytes.length && bytes[i + 1] !== CLOSE) {
      i++
      const high = bytes[i++]!
      if (low <= high) ranges.push([low, high])
    } else ranges.push([low, low])
  }
  return { ranges: negated ? complement(ranges) : ranges, end: i }
}

function complement(ranges: [number, number][]): Ranges {
  const out: [number, number][] = []
  let from = 0
  for (const [low, high] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (low > from) out.push([from, low - 1])
    from = Math.max(from, high + 1)
  }
  if (from <= LAST) out.push([from, LAST])
  return out
}

const holds = (ranges: Ranges, value: number): boolean => ranges.some(([a, b]) => value >= a && value <= b)

const overlap = (a: Ranges, b: Ranges): boolean =>
  a.some(([low, high]) => b.some(([from, to]) => low <= to && from <= high))

/** Whether the pattern matches a name as a whole. Linear memory, and no exponential case. */
export function matches(pattern: Pattern, name: string): boolean {
  if (pattern.literal !== undefined) return pattern.literal === name
  const { tokens } = pattern
  const chars = bytesOf(name)
  let i = 0
  let j = 0
  let star = -1
  let from = 0
  while (i < chars.length) {
    const token = tokens[j]
    if (token?.many === true) {
      star = j++
      from = i
    } else if (token !== undefined && holds(token.ranges, chars[i]!)) {
      i++
      j++
    } else if (star >= 0) {
      i = ++from // let the last star take one more
      j = star + 1
    } else return false
  }
  while (tokens[j]?.many === true) j++
  return j === tokens.length
}

/** Whether some name is matched by both: then the two speak, at least in part, of the same files. */
export function intersects(a: Pattern, b: Pattern): boolean {
  if (a.literal !== undefined) return matches(b, a.literal)
  if (b.literal !== undefined) return matches(a, b.literal)
  const width = b.tokens.length + 1
  const seen = new Uint8Array((a.tokens.length + 1) * width)
  const stack: [number, number][] = [[0, 0]]
  for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
    const [i, j] = state
    if (seen[i * width + j] === 1) continue
    seen[i * width + j] = 1
    const left = a.tokens[i]
    const right = b.tokens[j]
    if (left === undefined && right === undefined) return true
    if (left?.many === true) stack.push([i + 1, j])
    if (right?.many === true) stack.push([i, j + 1])
    if (left === undefined || right === undefined) continue
    if (left.many) {
      if (!right.many) stack.push([i, j + 1])
    } else if (right.many) stack.push([i + 1, j])
    else if (overlap(left.ranges, right.ranges)) stack.push([i + 1, j + 1])
  }
  return false
}

/** What a stream or a list names: the file itself, or all that lies below when it is a directory. */
export const below = (pattern: Pattern): Pattern => compilePattern(`${pattern.text}/*`)

/** `./a//b/` and `a/b` are one name. A leading `/` stays: such names are absolute. */
export function regularName(text: string): string {
  let name = text.replace(/\/{2,}/g, '/').replace(/(^|\/)(?:\.\/)+/g, '$1')
  if (name.length > 1 && name.endsWith('/')) name = name.slice(0, -1)
  return name
}

/** Why a pattern cannot mean what its writer wants, or undefined when nothing is wrong. */
export function patternFault(text: string): { message: string; fix: string } | undefined {
  if (text === '') return { message: 'an empty name', fix: 'write the name of a file, or remove the entry' }
  if (/[\n\0]/.test(text)) return { message: 'a line break or NUL in a name', fix: 'use ? in its place' }
  if (text.split('/').includes('..')) {
    return { message: "'..' leads out of the managed directory", fix: 'name files relative to the directory' }
  }
  if (/(?:^|[^\\])(?:\\\\)*\\$/.test(text)) {
    return { message: 'a backslash at the end escapes nothing', fix: "remove it, or write '\\\\\\\\'" }
  }
  // Shells differ in what this means, and so might the two ends of a plan.
  if (/\[[!^]?\]?[^\]\\]*\\[^\]]*\]/.test(text.replace(/\\[[\\]/g, ''))) {
    return {
      message: 'a backslash inside [ ]',
      fix: "remove it: write ']' first and '-' last, they then mean themselves",
    }
  }
  const reversed = /\[[^\]]*?([^\\\][])-([^\][])[^\]]*\]/.exec(text)
  if (reversed !== null && reversed[1]! > reversed[2]!) {
    const [, low, high] = reversed
    return { message: `the range ${low}-${high} is empty`, fix: `write ${high}-${low}` }
  }
  return undefined
}
