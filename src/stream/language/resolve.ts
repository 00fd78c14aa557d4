import { expandBraces } from './braces.ts'
import type { Commit, Config, ManualHome, Name, Rule, Step, Written } from './language.ts'
import { compilePattern, patternFault } from './pattern.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'
import type { WrittenConfig } from './read.ts'
import type { WrittenCommit } from './read-commit.ts'

/** Puts files in the place of group names, expands braces, and checks each name by itself. */
export function resolveNames(written: WrittenConfig, file: string, problems: Problems): Config {
  const names = nameReader(written, problems)
  const steps: Step[] = []
  const rules: Rule[] = []
  const seen = new Map<string, Written>()
  for (const { name, at, field, ...step } of written.steps) {
    const before = seen.get(name)
    if (before !== undefined && name !== '') {
      const message = `a step '${name}' is already in line ${before.at.line}`
      problems.error(at, `${field}.name`, message, 'give each step a name of its own, or join the two')
    } else seen.set(name, { text: name, at, field })
    steps.push({ name, at, field, inputs: step.inputs.flatMap(names), outputs: step.outputs.flatMap(names) })
    for (const rule of step.rules) {
      const commit = resolveCommit(rule.commit, names)
      const filesCommit = rule.filesCommit === undefined ? undefined : resolveCommit(rule.filesCommit, names)
      const { directory, fire } = rule
      for (const target of rule.names.flatMap(names)) {
        rules.push({
          name: target,
          directory,
          commit,
          filesCommit,
          fire,
          step: name,
          at: rule.at,
          field: rule.field,
        })
      }
    }
  }
  const { permanent, exclude, memory, fs, create, hashing } = written.lists
  return {
    file,
    name: written.name,
    version: written.version,
    steps,
    rules,
    permanent: permanent.flatMap(names),
    exclude: exclude.flatMap(names),
    memory: memory.flatMap(names),
    fs: fs.flatMap(names),
    create: create.flatMap(names),
    hashing: hashing.flatMap(names),
    manual: written.manual.flatMap(({ files, node }) => {
      const home = readHome(node, [...seen.keys()], problems)
      return home === undefined ? [] : [{ files: files.flatMap(names), ...home }]
    }),
  }
}

function resolveCommit(commit: WrittenCommit, names: (written: Written) => Name[]): Commit {
  return commit.on === 'file' ? { on: 'file', deps: commit.deps.flatMap(names) } : commit
}

function readHome(node: Written, steps: string[], problems: Problems): Omit<ManualHome, 'files'> | undefined {
  const match = /^([^:]+)(?::(\d{1,6}))?$/.exec(node.text)
  if (match === null) {
    problems.error(node.at, node.field, `'${node.text}' names no process`, "write 'step' or 'step:N'")
    return undefined
  }
  const step = match[1]!
  if (!steps.includes(step)) {
    const near = nearest(step, steps)
    const fix = near === null ? `the steps are ${steps.join(', ')}` : `did you mean '${near}'?`
    problems.error(node.at, node.field, `there is no step '${step}'`, fix)
    return undefined
  }
  return { step, process: Number(match[2] ?? 0) }
}

function nameReader(written: WrittenConfig, problems: Problems): (entry: Written) => Name[] {
  const groups = new Map<string, Written[]>()
  for (const { name, files } of written.aliases) {
    const before = groups.get(name.text)
    if (before === undefined) groups.set(name.text, files)
    else if (textsOf(before) !== textsOf(files)) {
      const message = `the group '${name.text}' is defined twice, with different files`
      problems.error(name.at, name.field, message, 'give one of them another name')
    }
  }
  const reported = new Set<string>()
  const once = (entry: Written, message: string, fix: string): void => {
    const key = `${entry.at.line}:${entry.at.column}`
    if (!reported.has(key)) problems.error(entry.at, entry.field, message, fix)
    reported.add(key)
  }

  const plain = (entry: Written): Name[] => {
    const fault = patternFault(entry.text)
    const texts = fault === undefined ? expandBraces(entry.text) : []
    if (fault !== undefined) once(entry, fault.message, fault.fix)
    else if (texts === undefined) once(entry, 'the braces stand for more than 10,000 names', 'use * or ?')
    return (texts ?? []).flatMap(text => {
      const pattern = compilePattern(text)
      if (pattern.text !== '' && pattern.text !== '.')
        return [
          {
            pattern,
            at: entry.at,
            field: entry.field,
            path: entry.text.includes('/'),
            slash: text.endsWith('/'),
          },
        ]
      const message = `'${entry.text}' is the managed directory itself`
      once(entry, message, 'write "*" for all files in it')
      return []
    })
  }

  const expand = (entry: Written, inside: string[]): Name[] => {
    const files = groups.get(entry.text)
    if (files === undefined) return plain(entry)
    if (inside.includes(entry.text)) {
      const circle = [...inside.slice(inside.indexOf(entry.text)), entry.text].join(' -> ')
      once(entry, `groups that contain each other: ${circle}`, 'name the files in one of them')
      return []
    }
    return files.flatMap(file =>
      // A name out of a group is reported where the group is used, because that is what must make sense.
      expand(file, [...inside, entry.text]).map(name => ({
        ...name,
        at: entry.at,
        field: entry.field,
        alias: entry.text,
      })),
    )
  }
  return entry => expand(entry, [])
}

const textsOf = (files: Written[]): string => JSON.stringify(files.map(file => file.text))
