/**
 * From JSON to what is written in it: keys, types and the older spellings of the paper. What names mean
 * together is checked later, in check.ts.
 */
import { parseJson, type Place } from '../../source/json.ts'
import { Fields, kindText, stringsOf } from './fields.ts'
import { type Fire, FIRE_WORDS, type Written } from './language.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'
import { readCommit, type WrittenCommit } from './read-commit.ts'

export interface WrittenRule {
  names: Written[]
  directory: boolean
  commit: WrittenCommit
  filesCommit: WrittenCommit | undefined
  fire: Fire
  at: Place
  field: string
}

export interface WrittenStep {
  name: string
  at: Place
  field: string
  inputs: Written[]
  outputs: Written[]
  rules: WrittenRule[]
}

export interface WrittenConfig {
  name: string
  version: string
  aliases: { name: Written; files: Written[] }[]
  steps: WrittenStep[]
  lists: Record<'permanent' | 'exclude' | 'memory' | 'fs' | 'create' | 'hashing', Written[]>
  manual: { files: Written[]; node: Written }[]
}

const TOP = [
  'name',
  'version',
  'configuration',
  'aliases',
  'IO_Graph',
  'permanent',
  'exclude',
  'storage',
  'home_node_policies',
  'home_node',
  'home_nodes',
]
const STEP = ['name', 'input_stream', 'output_stream', 'streaming']
const RULE = ['name', 'dirname', 'committed', 'mode', 'file_deps', 'n_files', 'nfiles', 'type']
const VERSIONS = ['1', '1.0', '1.1']

/** What the file says, or undefined when it is not JSON at all. Problems are added to `problems`. */
export function readConfig(text: string, problems: Problems): WrittenConfig | undefined {
  const { root, problems: syntax } = parseJson(text)
  for (const { at, message, fix } of syntax) problems.error(at, '', message, fix)
  if (root === undefined) return undefined
  if (root.kind !== 'object') {
    problems.error(root.at, '', `the file holds ${kindText(root)}`, 'write { "name": …, "IO_Graph": [ … ] }')
    return undefined
  }
  const top = new Fields(root, '', TOP, problems)
  const aliases: WrittenConfig['aliases'] = []
  for (const group of top.objects('aliases', ['group_name', 'files']))
    readGroup(group, aliases, problems, true)
  const steps = readSteps(top, aliases, problems)
  const storage = onlyObject(top, 'storage', ['memory', 'fs'], problems)
  const policies = onlyObject(top, 'home_node_policies', ['create', 'hashing', 'manual'], problems)
  if (top.has('configuration')) {
    const message = 'these are settings of the engine of CAPIO; Millrace does not read them'
    if (top.string('configuration', '"settings.toml"') !== undefined) {
      problems.warning(
        top.keyAt('configuration'),
        'configuration',
        message,
        'remove the key, or leave it for CAPIO',
      )
    }
  }
  return {
    name: required(top, 'name', '"my_workflow"', problems)?.text ?? '',
    version: readVersion(top, problems),
    aliases,
    steps,
    lists: {
      permanent: top.strings('permanent'),
      exclude: top.strings('exclude'),
      memory: storage?.strings('memory') ?? [],
      fs: storage?.strings('fs') ?? [],
      create: policies?.strings('create') ?? [],
      hashing: policies?.strings('hashing') ?? [],
    },
    manual: readManual(top, policies, problems),
  }
}

function readSteps(top: Fields, aliases: WrittenConfig['aliases'], problems: Problems): WrittenStep[] {
  const graph = top.node('IO_Graph')
  if (graph === undefined) {
    const fix = 'write "IO_Graph": [ { "name": …, "output_stream": [ … ] }, … ]'
    problems.error(top.at, 'IO_Graph', "the key 'IO_Graph' is missing: it lists the steps", fix)
  } else if (graph.kind !== 'array') {
    problems.error(
      graph.at,
      'IO_Graph',
      `a list of steps is needed here, not ${kindText(graph)}`,
      'write [ { … }, { … } ]',
    )
    return []
  } else if (graph.items.length === 0) {
    problems.error(graph.at, 'IO_Graph', 'there is no step', 'write { "name": … } for each program')
  }
  return top.objects('IO_Graph', STEP).map(step => {
    const name = required(step, 'name', '"step_name"', problems)
    if (name !== undefined && /[\s:/]/.test(name.text)) {
      problems.error(
        name.at,
        name.field,
        `'${name.text}' has a blank, ':' or '/'`,
        'use letters, digits, _ and -',
      )
    }
    return {
      name: name?.text ?? '',
      at: name?.at ?? step.at,
      field: step.field,
      inputs: readStream(step, 'input_stream', aliases, problems),
      outputs: readStream(step, 'output_stream', aliases, problems),
      rules: step.objects('streaming', RULE).flatMap(rule => readRule(rule, problems) ?? []),
    }
  })
}

/** Names, or `{ group_name, files }` among them or in their place, as the paper writes streams. */
function readStream(
  step: Fields,
  key: 'input_stream' | 'output_stream',
  aliases: WrittenConfig['aliases'],
  problems: Problems,
): Written[] {
  const node = step.node(key)
  if (node === undefined) return []
  const path = step.path(key)
  const items = node.kind === 'array' ? node.items : [node]
  return items.flatMap((item, index) => {
    const field = node.kind === 'array' ? `${path}[${index}]` : path
    if (item.kind !== 'object') return stringsOf(item, field, problems)
    return readGroup(new Fields(item, field, ['group_name', 'files'], problems), aliases, problems, false)
  })
}

function readGroup(
  group: Fields,
  aliases: WrittenConfig['aliases'],
  problems: Problems,
  named: boolean,
): Written[] {
  const name = named
    ? required(group, 'group_name', '"group0"', problems)
    : group.string('group_name', '"group0"')
  const files = group.strings('files')
  if (!group.has('files')) {
    problems.error(group.at, group.path('files'), "the key 'files' is missing", 'write "files": ["name", …]')
  } else if (files.length === 0) {
    problems.warning(group.keyAt('files'), group.path('files'), 'a group without files', 'name its files')
  }
  if (name !== undefined) aliases.push({ name, files })
  return files
}

function readRule(rule: Fields, problems: Problems): WrittenRule | undefined {
  const type = rule.string('type', '"d"')
  if (type !== undefined && type.text !== 'd' && type.text !== 'f') {
    problems.error(
      type.at,
      type.field,
      `type is 'd' (directory) or 'f' (file), not '${type.text}'`,
      'write "d"',
    )
  }
  const both = rule.has('name') && rule.has('dirname')
  if (both) {
    const message = "a rule has either 'name' (files) or 'dirname' (directories), not both"
    problems.error(rule.keyAt('dirname'), rule.path('dirname'), message, 'write two rules')
  }
  const key = rule.has('dirname') ? 'dirname' : 'name'
  if (!rule.has(key)) {
    const message = "a rule without 'name' or 'dirname' is about nothing"
    problems.error(rule.at, rule.path('name'), message, 'write "name": ["file", …]')
  }
  const names = rule.strings(key)
  if (rule.has(key) && names.length === 0 && rule.node(key)?.kind === 'array') {
    problems.warning(
      rule.keyAt(key),
      rule.path(key),
      'a rule for no file',
      'name its files, or remove the rule',
    )
  }
  if (key === 'dirname' && type?.text === 'f') {
    problems.error(type.at, type.field, "'dirname' says directory, 'type' says file", 'remove "type"')
  }
  const directory = key === 'dirname' || type?.text === 'd'
  const commit = readCommit(rule, directory, problems)
  if (commit === undefined || both) return undefined
  return { names, directory, ...commit, fire: readMode(rule, problems), at: rule.at, field: rule.field }
}

function readMode(rule: Fields, problems: Problems): Fire {
  const mode = rule.string('mode', '"update" or "no_update"')
  if (mode === undefined) return 'update'
  const known = FIRE_WORDS.find(word => word === mode.text)
  if (known !== undefined) return known
  const word = nearest(mode.text.replace(/[-\s]/g, '_'), FIRE_WORDS)
  const fix = word === null ? 'write "update" or "no_update"' : `did you mean '${word}'?`
  problems.error(mode.at, mode.field, `'${mode.text}' is no mode`, fix)
  return 'update'
}

function readVersion(top: Fields, problems: Problems): string {
  const node = top.node('version')
  if (node === undefined) return '1.0'
  const text = node.kind === 'number' || node.kind === 'string' ? String(node.value) : ''
  if (!VERSIONS.includes(text)) {
    problems.error(
      node.at,
      'version',
      `version ${text || kindText(node)} is not known`,
      'write 1.1, or leave it out for 1.0',
    )
  } else if (node.kind === 'string') {
    problems.warning(node.at, 'version', 'the version is a number', `write ${text} without quotes`)
  }
  return text === '1.1' ? '1.1' : '1.0'
}

function readManual(top: Fields, policies: Fields | undefined, problems: Problems): WrittenConfig['manual'] {
  const manual = policies
    ?.objects('manual', ['name', 'app_node'])
    .map(entry => ['name', 'app_node', entry] as const)
  const older = top.either(['home_node', 'home_nodes'])
  if (older !== undefined && policies !== undefined) {
    const message = `'${older}' and 'home_node_policies' both say where files live`
    problems.error(top.keyAt(older), older, message, "keep 'home_node_policies'")
  }
  const entries = [
    ...(manual ?? []),
    ...(older === undefined ? [] : top.objects(older, ['files', 'node'])).map(
      e => ['files', 'node', e] as const,
    ),
  ]
  return entries.flatMap(([names, node, entry]) => {
    const home = required(entry, node, '"step" or "step:0"', problems)
    const files = entry.strings(names)
    if (!entry.has(names)) {
      problems.error(
        entry.at,
        entry.path(names),
        `the key '${names}' is missing`,
        `write "${names}": ["file", …]`,
      )
    }
    return home === undefined ? [] : [{ files, node: home }]
  })
}

function onlyObject(
  top: Fields,
  key: string,
  known: readonly string[],
  problems: Problems,
): Fields | undefined {
  const node = top.node(key)
  if (node === undefined) return undefined
  if (node.kind === 'object') return new Fields(node, key, known, problems)
  top.wrong(key, `an object with ${known.map(k => `"${k}"`).join(', ')}`)
  return undefined
}

function required(fields: Fields, key: string, example: string, problems: Problems): Written | undefined {
  if (!fields.has(key)) {
    problems.error(fields.at, fields.path(key), `the key '${key}' is missing`, `write "${key}": ${example}`)
  }
  return fields.string(key, example)
}
