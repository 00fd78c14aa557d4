import type { Config } from './language.ts'
import { Precedence } from './names.ts'
import { type EffectiveRule, streamIndex } from '../board/plan.ts'
import type { Problems } from './problems.ts'

/** Files that are complete only when each other is: none ever would be. */
export function checkFileCircles(rules: EffectiveRule[], problems: Problems): void {
  const table = new Precedence(rules)
  const next = (rule: EffectiveRule): EffectiveRule[] => {
    if (rule.commit.on !== 'file') return []
    return rule.commit.deps.flatMap(dep => table.possible(dep.pattern))
  }
  for (const circle of findCircles(rules, next)) {
    const [first] = circle
    const names = [...circle, first!].map(rule => rule.pattern.text)
    const self = circle.length === 1
    const message = self
      ? `'${names[0]}' waits for itself: the files that it depends on have this very rule`
      : `these wait for each other: ${names.join(' -> ')}`
    const fix = self
      ? 'give the file in file_deps a rule of its own, such as on_close'
      : 'give one of them another rule, such as on_close'
    problems.error(first!.name.at, first!.name.field, message, fix)
  }
}

/** Steps that can read each other's files only when the other has ended. */
export function checkStepCircles(config: Config, rules: EffectiveRule[], problems: Problems): void {
  const writers = streamIndex(config, 'outputs')
  const table = new Precedence(rules)
  const byName = new Map(config.steps.map(step => [step.name, step]))
  const next = (name: string): string[] =>
    byName.get(name)!.inputs.flatMap(({ pattern }) => {
      const found = table.possible(pattern)
      const atEnd = found.every(rule => rule.commit.on === 'termination' && rule.fire === 'update')
      return atEnd ? writers.touching(pattern).filter(writer => writer !== name) : []
    })
  for (const circle of findCircles([...byName.keys()], next)) {
    const first = byName.get(circle[0]!)!
    const names = [...circle, first.name].join(' -> ')
    const message = `steps that read what the other completes only at its end: ${names}; they would wait for ever`
    problems.warning(
      first.at,
      first.field,
      message,
      'commit one of the files on_close, or fire it as it grows (no_update)',
    )
  }
}

/** Each circle once, beginning with its member that comes first in `nodes`. */
export function findCircles<T>(nodes: readonly T[], next: (node: T) => T[]): T[][] {
  const circles: T[][] = []
  const done = new Set<T>()
  const path: T[] = []
  const onPath = new Set<T>()
  const visit = (start: T): void => {
    // An own stack: chains of thousands of files would overflow that of the engine.
    const stack: { node: T; rest: T[] }[] = [enter(start)]
    while (stack.length > 0) {
      const top = stack.at(-1)!
      const target = top.rest.pop()
      if (target === undefined) {
        stack.pop()
        path.pop()
        onPath.delete(top.node)
        done.add(top.node)
      } else if (onPath.has(target)) circles.push(path.slice(path.indexOf(target)))
      else if (!done.has(target)) stack.push(enter(target))
    }
  }
  const enter = (node: T): { node: T; rest: T[] } => {
    path.push(node)
    onPath.add(node)
    return { node, rest: [...new Set(next(node))].reverse() }
  }
  for (const node of nodes) if (!done.has(node)) visit(node)
  return circles
}
