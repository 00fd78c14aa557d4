/**
 * Brace lists as Bash writes them: `f{a,b}.dat`, `part{1..4}`, `part{01..16..5}`, also inside each other.
 * A brace without a comma or range means itself, and `\{` always does.
 */
const MOST = 10_000

/** All texts that the braces stand for, in order; undefined when they are more than 10,000. */
export function expandBraces(text: string): string[] | undefined {
  const open = findOpen(text, 0)
  if (open === undefined) return [text]
  const head = text.slice(0, open.start)
  const tails = expandBraces(text.slice(open.end + 1))
  if (tails === undefined) return undefined
  const out: string[] = []
  for (const choice of open.choices) {
    const middles = open.range ? [choice] : expandBraces(choice)
    if (middles === undefined || out.length + middles.length * tails.length > MOST) return undefined
    for (const middle of middles) for (const tail of tails) out.push(head + middle + tail)
  }
  return out
}

interface Open {
  start: number
  end: number
  choices: string[]
  range: boolean
}

function findOpen(text: string, from: number): Open | undefined {
  for (let start = from; start < text.length; start++) {
    if (text[start] === '\\') start++
    else if (text[start] === '{') {
      const found = readChoices(text, start)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function readChoices(text: string, start: number): Open | undefined {
  const choices: string[] = []
  let depth = 0
  let begin = start + 1
  for (let i = start; i < text.length; i++) {
    const char = text[i]
    if (char === '\\') i++
    else if (char === '{') depth++
    else if (char === ',' && depth === 1) {
      choices.push(text.slice(begin, i))
      begin = i + 1
    } else if (char === '}' && --depth === 0) {
      if (choices.length > 0)
        return { start, end: i, choices: [...choices, text.slice(begin, i)], range: false }
      const range = readRange(text.slice(begin, i))
      return range === undefined ? undefined : { start, end: i, choices: range, range: true }
    }
  }
  return undefined
}

function readRange(inner: string): string[] | undefined {
  const match = /^(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?$/.exec(inner) ?? /^([A-Za-z])\.\.([A-Za-z])$/.exec(inner)
  if (match === null) return undefined
  const letters = !/\d/.test(match[1]!)
  const [low, high] = letters
    ? [match[1]!.charCodeAt(0), match[2]!.charCodeAt(0)]
    : [Number(match[1]), Number(match[2])]
  const by = Math.abs(Number(match[3] ?? 1)) || 1
  if (Math.abs(high - low) / by > MOST) return Array.from({ length: MOST + 1 }, () => '')
  const padded = [match[1]!, match[2]!].some(end => /^-?0\d/.test(end))
  const width = padded ? Math.max(match[1]!.length, match[2]!.length) : 0
  const out: string[] = []
  for (let value = low; low <= high ? value <= high : value >= high; value += low <= high ? by : -by) {
    if (letters) out.push(String.fromCharCode(value))
    else
      out.push(value < 0 ? `-${String(-value).padStart(width - 1, '0')}` : String(value).padStart(width, '0'))
  }
  return out
}
