import { commitText } from '../language/language.ts'
import type { Plan, PlanRule } from './plan.ts'

const WIDTH = 100
const GAP = 2

/** The plan for reading: one line per rule, in order of precedence, within 100 columns. */
export function planTable(plan: Plan): string {
  const steps = plan.steps.map(step => step.name).join(', ')
  const rows = plan.rules.filter(rule => rule.origin !== 'inside').map(row)
  const head = ['FILES', 'WRITTEN BY', 'READ BY', 'COMPLETE', 'READABLE', 'KEPT', 'WHERE']
  const lines = [elide(`workflow ${plan.name}: ${counted(plan.steps.length, 'step')} (${steps})`, WIDTH), '']
  if (rows.length === 0) lines.push('no step writes anything, so none waits')
  else lines.push(...columns([head, ...rows], WIDTH))
  const lists = [
    ['not managed', plan.exclude],
    ['kept', plan.permanent],
  ] as const
  const named = lists.filter(([, patterns]) => patterns.length > 0)
  if (named.length > 0) lines.push('')
  for (const [title, patterns] of named) {
    lines.push(elideEnd(`${title}: ${patterns.map(pattern => pattern.text).join(', ')}`, WIDTH))
  }
  return `${lines.join('\n')}\n`
}

function row(rule: PlanRule): string[] {
  const name = rule.directory ? `${rule.pattern.text}/` : rule.pattern.text
  const origin = rule.origin === 'default' ? ' (default)' : ''
  const { home } = rule
  const node =
    home.policy === 'create' ? '' : home.policy === 'hashing' ? 'by hash' : `${home.step}:${home.process}`
  return [
    name,
    rule.producers.join(' '),
    rule.consumers.join(' ') || 'no step',
    `${commitText(rule.commit)}${origin}`,
    rule.fire === 'update' ? 'when complete' : 'as it grows',
    rule.permanent,
    [rule.storage, node].filter(Boolean).join(' ') || '-',
  ]
}

/** Aligned columns; when they do not fit, the widest are made narrower, and texts elided in the middle. */
export function columns(rows: readonly (readonly string[])[], width: number): string[] {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map(cells => cells[index]!.length)))
  const room = width - GAP * (widths.length - 1)
  for (let sum = widths.reduce((a, b) => a + b, 0); sum > room; sum--) {
    widths[widths.indexOf(Math.max(...widths))]!--
  }
  return rows.map(cells =>
    cells
      .map((cell, index) => elide(cell, widths[index]!).padEnd(widths[index]! + GAP))
      .join('')
      .trimEnd(),
  )
}

export function elide(text: string, width: number): string {
  if (text.length <= width) return text
  if (width < 3) return text.slice(0, width)
  const tail = Math.floor((width - 1) / 2)
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`
}

const elideEnd = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, width - 1)}…`

export const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`
