import { Future } from './future.ts'
import { Stream } from './value-stream.ts'
import { StreamFile } from './stream.ts'

/** All arguments together, and a text among them, are shown in this many letters. */
const LONGEST = 240
const LONGEST_TEXT = 80
const SHOWN_ITEMS = 4

/** What a task is called with, in one line, for people. Large values are named by what they are. */
export function argumentsText(given: readonly unknown[]): string {
  const text = given.map(one => textOf(one, true)).join(', ')
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text
}

function textOf(value: unknown, isOuter: boolean): string {
  if (typeof value === 'string') return JSON.stringify(cut(value))
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return `function ${value.name}`
  if (typeof value !== 'object' || value === null) return String(value)
  if (value instanceof Future || value instanceof Stream) return `result of ${makerOf(value)}`
  if (value instanceof StreamFile) return JSON.stringify(cut(value.path))
  if (Array.isArray(value)) return isOuter ? listText(value) : `Array(${value.length})`
  const name = value.constructor?.name ?? 'object'
  if (ArrayBuffer.isView(value)) return `${name}(${'length' in value ? String(value.length) : ''})`
  if (value instanceof Map || value instanceof Set) return `${name}(${value.size})`
  if (value instanceof Date) return value.toISOString()
  return name === 'Object' ? (isOuter ? objectText(value) : '{…}') : name
}

function listText(list: readonly unknown[]): string {
  const shown = list.slice(0, SHOWN_ITEMS).map(one => textOf(one, false))
  return `[${shown.join(', ')}${list.length > SHOWN_ITEMS ? `, … ${list.length} in all` : ''}]`
}

/** Getters of a program are not called. */
function objectText(value: object): string {
  const fields = Object.entries(Object.getOwnPropertyDescriptors(value)).filter(([, { get }]) => !get)
  const shown = fields.slice(0, SHOWN_ITEMS).map(([key, field]) => `${key}: ${textOf(field.value, false)}`)
  return `{ ${shown.join(', ')}${fields.length > SHOWN_ITEMS ? ', …' : ''} }`
}

const makerOf = ({ datum }: Future<unknown> | Stream<unknown>): string =>
  datum.current.producer?.title ?? 'an earlier task'

const cut = (text: string): string =>
  text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text
