import type { Plan, PlanRule } from '../board/plan.ts'
import { elide } from '../board/table.ts'

/**
 * Who hands what to whom, a line for each pair of steps: `a ==file==> b` for what is read as it grows,
 * `a --file--> b` for what is read when complete. Steps come in the order in which data pass through them.
 */
export function planGraph(plan: Plan, width = 100): string {
  const lines: string[] = []
  const drawn = plan.rules.filter(rule => rule.origin === 'rule' || rule.origin === 'default')
  for (const from of flowOrder(plan)) {
    const mine = drawn.filter(rule => rule.producers.includes(from))
    for (const grows of [true, false]) {
      const rules = mine.filter(rule => (rule.fire === 'no_update') === grows)
      const targets = new Set(
        rules.flatMap(rule => (rule.consumers.length > 0 ? rule.consumers : [end(rule)])),
      )
      for (const to of targets) {
        if (to === from) continue
        const names = rules.filter(
          rule => rule.consumers.includes(to) || (rule.consumers.length === 0 && end(rule) === to),
        )
        const files = names.map(rule => `${rule.pattern.text}${rule.directory ? '/' : ''}`).join(', ')
        const [tail, head] = grows ? ['==', '==>'] : ['--', '-->']
        const room = width - from.length - to.length - 11
        lines.push(`  ${from} ${tail} ${elide(files, Math.max(8, room))} ${head} ${to}`)
      }
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

const end = (rule: PlanRule): string => (rule.permanent === 'no' ? '(no reader)' : '(kept)')

/** Producers before consumers; in a circle, the order of the file. */
function flowOrder(plan: Plan): string[] {
  const waiting = new Set(plan.steps.map(step => step.name))
  const out: string[] = []
  while (waiting.size > 0) {
    const free = [...waiting].filter(
      name =>
        !plan.rules.some(
          rule => rule.consumers.includes(name) && rule.producers.some(p => p !== name && waiting.has(p)),
        ),
    )
    const next = free.length > 0 ? free : [[...waiting][0]!]
    for (const name of next) waiting.delete(name)
    out.push(...next)
  }
  return out
}
