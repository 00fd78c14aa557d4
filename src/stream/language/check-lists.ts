import type { Config, Name } from './language.ts'
import { NameIndex } from './names.ts'
import { streamIndex } from '../board/plan.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'

/** `permanent`, `exclude`, `storage` and the home-node policies: against each other and against the rules. */
export function checkLists(config: Config, problems: Problems): void {
  checkExclude(config, problems)
  checkPermanent(config, problems)
  checkTwice(
    [
      ['memory', config.memory],
      ['fs', config.fs],
    ],
    'is stored both in',
    problems,
  )
  checkTwice(
    [
      ['create', config.create],
      ['hashing', config.hashing],
      ...config.manual.map(({ step, process, files }) => [`the node of ${step}:${process}`, files] as const),
    ],
    'has two home nodes:',
    problems,
  )
}

function checkExclude(config: Config, problems: Problems): void {
  const excluded = new NameIndex(config.exclude.map(name => [name.pattern, name] as const))
  for (const { name } of config.rules) {
    const { pattern, at, field } = name
    // A pattern may well be excluded in part; only when nothing of it is left is it a contradiction.
    const by = excluded
      .touching(pattern)
      .find(
        entry =>
          pattern.literal !== undefined || entry.pattern.text === pattern.text || entry.pattern.text === '*',
      )
    if (by === undefined) continue
    const message = `'${pattern.text}' has a rule, but exclude ('${by.pattern.text}', line ${by.at.line}) takes it out`
    problems.error(at, field, message, 'remove it from exclude, or remove the rule')
  }
  const ruled = new Set(config.rules.map(rule => rule.name.pattern.text))
  for (const { pattern, at, field } of config.steps.flatMap(step => step.outputs)) {
    if (pattern.literal === undefined || ruled.has(pattern.text)) continue
    const by = excluded.covering(pattern.literal)[0]
    if (by === undefined) continue
    const message = `'${pattern.text}' is excluded in line ${by.at.line}: no step waits for it`
    problems.warning(at, field, message, 'remove it from exclude, or from the stream')
  }
}

function checkPermanent(config: Config, problems: Problems): void {
  const writers = streamIndex(config, 'outputs')
  const readers = streamIndex(config, 'inputs')
  const outputs = config.steps.flatMap(step => step.outputs)
  const texts = outputs.map(name => name.pattern.text)
  for (const { pattern, at, field } of config.permanent) {
    if (writers.touching(pattern).length > 0 || writers.touchingTree(pattern).length > 0) continue
    const near = nearest(pattern.text, texts)
    const fix = near === null ? 'add it to an output_stream' : `did you mean '${near}'?`
    problems.warning(at, field, `'${pattern.text}' is permanent, but no step writes it`, fix)
  }
  const kept = new NameIndex(config.permanent.map(name => [name.pattern, name] as const))
  const excluded = new NameIndex(config.exclude.map(name => [name.pattern, name] as const))
  for (const { pattern, at, field } of outputs) {
    if (readers.touchingTree(pattern).length > 0 || kept.touchingTree(pattern).length > 0) continue
    if (excluded.touching(pattern).length > 0) continue
    const message = `no step reads '${pattern.text}' and it is not permanent: it is removed at the end`
    problems.warning(at, field, message, `add it to "permanent" to keep it`)
  }
}

function checkTwice(lists: readonly (readonly [string, Name[]])[], verb: string, problems: Problems): void {
  const seen = new Map<string, { list: string; name: Name }>()
  for (const [list, names] of lists) {
    for (const name of names) {
      const { text } = name.pattern
      const before = seen.get(text)
      if (before === undefined) seen.set(text, { list, name })
      else if (before.list === list)
        problems.warning(name.at, name.field, `'${text}' is listed twice`, 'remove one')
      else {
        const message = `'${text}' ${verb} ${before.list} (line ${before.name.at.line}) and ${list}`
        problems.error(name.at, name.field, message, 'keep one of them')
      }
    }
  }
}
