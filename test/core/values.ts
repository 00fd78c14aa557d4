/**
 * What the tasks of random programs compute. A value says who made it and from what, so that two equal
 * values have the same past. Members of teams add to it; the order of additions does not matter.
 */
export interface Value {
  readonly base: string
  readonly added: readonly string[]
}

export const fresh = (base: string): Value => ({ base, added: [] })

export const plus = (value: Value, contribution: string): Value => ({
  base: value.base,
  added: [...value.added, contribution],
})

export const show = (value: Value): string => `${value.base}{${value.added.toSorted().join(' ')}}`

/** What the function of a task makes of its inputs for its access number `index`. */
export function effect(uid: string, index: number, inputs: readonly string[], partial: boolean): string {
  return `${uid}.${index}${partial ? '~' : ''}:${digest(inputs.join(','))}`
}

function digest(text: string): string {
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 2654435761)
    b = Math.imul(b ^ code, 1597334677)
  }
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36)
}
