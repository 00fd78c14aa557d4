import { expand } from 'brace-expansion'

const MOST = 10_000

/**
 * All texts that brace lists stand for, in order, as Bash has them: `f{a,b}.dat`, `part{1..4}`, `part{01..16..5}`, also inside
 * each other. Undefined when they are more than 10,000. The library would remove the backslashes, which patterns
 * need, so characters with one are hidden from it.
 */
export function expandBraces(text: string): string[] | undefined {
  if (text === '') return ['']
  const hidden: string[] = []
  const hide = (escape: string): string => `\0${hidden.push(escape) - 1}\0`
  const show = (found: string): string =>
    found.replace(/\0(\d+)\0/g, (_, i: string) => hidden[Number(i)] ?? '')
  const found = expand(text.replace(/\\[^]?/g, hide), { max: MOST + 1 })
  return found.length > MOST ? undefined : found.map(show)
}
