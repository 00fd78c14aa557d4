import { commitText } from './language.ts'
import { compilePattern } from './pattern.ts'
import { NameIndex } from './names.ts'
import type { Plan, PlanRule } from '../board/plan.ts'

/** Steps and what passes between them, for Graphviz. Ids are stable, so that two versions can be compared. */
export function planDot(plan: Plan): string {
  const lines = [
    `digraph ${quote(plan.name)} {`,
    '  rankdir=LR',
    '  node [fontname="sans-serif", fontsize=11]',
    '  edge [fontname="sans-serif", fontsize=9]',
  ]
  for (const step of plan.steps)
    lines.push(`  ${id('step', step.name)} [shape=box, style=bold, label=${quote(step.name)}]`)
  // What a directory's rule gives to its files is drawn with the directory.
  const drawn = plan.rules.filter(rule => rule.origin === 'rule' || rule.origin === 'default')
  for (const rule of drawn) lines.push(...node(rule))
  for (const rule of drawn) {
    if (rule.commit.on !== 'file') continue
    for (const dep of rule.commit.deps) {
      const target = drawn.find(other => other.pattern.text === dep.pattern.text)
      const from = target === undefined ? id('file', dep.pattern.text) : fileId(target)
      if (target === undefined) lines.push(`  ${from} [shape=note, label=${quote(dep.pattern.text)}]`)
      lines.push(`  ${from} -> ${fileId(rule)} [style=dotted, label="completes"]`)
    }
  }
  lines.push(...sources(plan))
  return `${lines.join('\n')}\n}\n`
}

function node(rule: PlanRule): string[] {
  const shape = rule.directory ? 'folder' : 'note'
  const kept = rule.permanent === 'no' ? '' : ', style=filled, fillcolor="#e8f0e8"'
  const label = `${rule.pattern.text}${rule.directory ? '/' : ''}\n${commitText(rule.commit)}`
  const streams = rule.fire === 'no_update'
  const edge = streams ? 'label="as it grows", penwidth=2' : 'label="when complete", style=dashed'
  return [
    `  ${fileId(rule)} [shape=${shape}, label=${quote(label)}${kept}]`,
    ...rule.producers.map(step => `  ${id('step', step)} -> ${fileId(rule)}`),
    ...rule.consumers.map(step => `  ${fileId(rule)} -> ${id('step', step)} [${edge}]`),
  ]
}

/** Inputs that no step writes must be there before the start. */
function sources(plan: Plan): string[] {
  const written = new NameIndex(plan.rules.map(rule => [rule.pattern, rule] as const))
  const seen = new Set<string>()
  return plan.steps.flatMap(step =>
    step.inputs.flatMap(text => {
      if (written.touchingTree(compilePattern(text)).length > 0) return []
      const edge = `  ${id('input', text)} -> ${id('step', step.name)}`
      if (seen.has(text)) return [edge]
      seen.add(text)
      return [`  ${id('input', text)} [shape=note, style=dotted, label=${quote(text)}]`, edge]
    }),
  )
}

const fileId = (rule: PlanRule): string => id(rule.directory ? 'dir' : 'file', rule.pattern.text)

const id = (kind: string, name: string): string => quote(`${kind} ${name}`)

const quote = (text: string): string => `"${text.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`
