import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

export type Entity = Record<string, unknown>

export interface Document {
  '@context': unknown
  '@graph': Entity[]
}

const SPEC = 'https://w3id.org/ro/crate/1.1'
const PROCESS = 'https://w3id.org/ro/wfrun/process/0.5'
const WORKFLOW = 'https://w3id.org/ro/wfrun/workflow/0.5'
const WORKFLOW_CRATE = 'https://w3id.org/workflowhub/workflow-ro-crate/1.0'
const STATES = ['Potential', 'Active', 'Completed', 'Failed'].map(
  name => `http://schema.org/${name}ActionStatus`,
)
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/

const list = (value: unknown): unknown[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as unknown[]) : [value]
/** A state is named by its address, as a text or as a reference. */
const stateOf = (action: Entity): string => {
  const state = action['actionStatus']
  return typeof state === 'string' ? state : idOf(state)
}
const idOf = (value: unknown): string => String((value as Entity | null)?.['@id'])
const idsOf = (value: unknown): string[] => list(value).map(idOf)
const isA = (entity: Entity | undefined, ...types: string[]): boolean =>
  list(entity?.['@type']).some(type => types.includes(String(type)))
const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

/** A crate as rules see it. */
class Crate {
  readonly folder: string
  readonly document: Document
  readonly graph: readonly Entity[]
  readonly byId: ReadonlyMap<string, Entity>
  readonly descriptor: Entity | undefined
  readonly root: Entity | undefined
  readonly actions: readonly Entity[]
  /** Files and folders other than the root. */
  readonly data: readonly Entity[]

  constructor(folder: string, document: Document) {
    this.folder = folder
    this.document = document
    this.graph = document['@graph']
    this.byId = new Map(this.graph.map(entity => [idOf(entity), entity]))
    this.descriptor = this.byId.get('ro-crate-metadata.json')
    this.root = this.byId.get(idOf(this.descriptor?.['about']))
    this.actions = this.graph.filter(entity => isA(entity, 'CreateAction'))
    this.data = this.graph.filter(entity => isA(entity, 'File', 'Dataset') && entity !== this.root)
  }

  path(entity: Entity): string {
    // As a reader of the crate resolves it: what is after '#' or '?' names no file.
    return fileURLToPath(new URL(idOf(entity), pathToFileURL(`${this.folder}/`)))
  }
}

type Check = (crate: Crate) => boolean

function attempt<T>(read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}

/** What RO-Crate 1.1 and the profiles Process Run Crate and Workflow Run Crate 0.5 ask for, in our own words. */
export const RULES = {
  'the context is that of RO-Crate 1.1': ({ document }) =>
    list(document['@context']).includes(`${SPEC}/context`),
  'each entity has an id and a type': ({ graph }) =>
    graph.every(entity => isText(entity['@id']) && list(entity['@type']).length > 0),
  'no two entities have the same id': ({ graph, byId }) => byId.size === graph.length,
  'ids are valid addresses': ({ graph }) =>
    graph.every(
      entity =>
        /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/.test(idOf(entity)) && !/%(?![0-9a-f]{2})/i.test(idOf(entity)),
    ),
  'the graph is flat: a property has texts, or refers to entities': ({ graph }) =>
    graph.every(entity =>
      Object.values(entity)
        .flatMap(list)
        .every(value => typeof value !== 'object' || Object.keys(value ?? {}).join() === '@id'),
    ),
  'what is referred to is there, or has an address of its own': ({ graph, byId }) =>
    graph.every(entity =>
      Object.values(entity)
        .flatMap(list)
        .every(value => typeof value !== 'object' || byId.has(idOf(value)) || /^https?:/.test(idOf(value))),
    ),
  'the descriptor is a CreativeWork': ({ descriptor }) => isA(descriptor, 'CreativeWork'),
  'the descriptor conforms to RO-Crate 1.1': ({ descriptor }) =>
    idsOf(descriptor?.['conformsTo']).includes(SPEC),
  'the descriptor is about a Dataset': ({ root }) => isA(root, 'Dataset') && idOf(root).endsWith('/'),
  'the root has a name': ({ root }) => isText(root?.['name']),
  'the root has a description': ({ root }) => isText(root?.['description']),
  'the root has a date': ({ root }) => ISO_TIME.test(String(root?.['datePublished'])),
  'the root has a license': ({ root }) => list(root?.['license']).length > 0,
  'the root conforms to the profiles': ({ root }) =>
    [PROCESS, WORKFLOW, WORKFLOW_CRATE].every(id => idsOf(root?.['conformsTo']).includes(id)),
  'profiles are described': ({ root, byId }) =>
    idsOf(root?.['conformsTo']).every(
      id => isA(byId.get(id), 'CreativeWork') && isText(byId.get(id)?.['version']),
    ),
  'files and folders are parts of the root': ({ root, data }) =>
    data.every(entity => idsOf(root?.['hasPart']).includes(idOf(entity))),
  'parts of the root are files and folders': ({ root, byId }) =>
    idsOf(root?.['hasPart']).every(id => isA(byId.get(id), 'File', 'Dataset')),
  'a folder is a Dataset with a slash at the end, and there': crate =>
    crate.data
      .filter(entity => isA(entity, 'Dataset'))
      .every(
        entity =>
          idOf(entity).endsWith('/') && attempt(() => statSync(crate.path(entity)).isDirectory()) === true,
      ),
  'a file is there with its size': crate =>
    crate.data
      .filter(entity => isA(entity, 'File'))
      .every(
        entity => String(attempt(() => statSync(crate.path(entity)).size)) === String(entity['contentSize']),
      ),
  'a file has its SHA-256': crate =>
    crate.data
      .filter(entity => isA(entity, 'File'))
      .every(entity => {
        const content = attempt(() => readFileSync(crate.path(entity)))
        return content !== null && createHash('sha256').update(content).digest('hex') === entity['sha256']
      }),
  'the main entity is a workflow in a file': ({ root, byId }) => {
    const main = byId.get(idOf(root?.['mainEntity']))
    return ['File', 'SoftwareSourceCode', 'ComputationalWorkflow'].every(type => isA(main, type))
  },
  'the workflow has a name and a language': ({ root, byId }) => {
    const main = byId.get(idOf(root?.['mainEntity']))
    const language = byId.get(idOf(main?.['programmingLanguage']))
    return isText(main?.['name']) && isA(language, 'ComputerLanguage')
  },
  'an action has the workflow as instrument': ({ root, actions }) =>
    actions.some(action => idOf(action['instrument']) === idOf(root?.['mainEntity'])),
  'each action has a program as instrument': ({ actions, byId }) =>
    actions.every(action => {
      const program = byId.get(idOf(action['instrument']))
      return isA(program, 'SoftwareApplication', 'SoftwareSourceCode', 'ComputationalWorkflow')
    }),
  'programs have names': ({ graph }) =>
    graph.every(entity => !isA(entity, 'SoftwareApplication') || isText(entity['name'])),
  'the root mentions each action': ({ root, actions }) =>
    actions.every(action => idsOf(root?.['mentions']).includes(idOf(action))),
  'each action says what it read': ({ actions, byId }) => actions.every(refersToData('object', byId)),
  'each action says what it made': ({ actions, byId }) => actions.every(refersToData('result', byId)),
  'each action ended after it began': ({ actions }) =>
    actions.every(({ startTime, endTime }) => {
      const times = [String(startTime), String(endTime)]
      return times.every(time => ISO_TIME.test(time)) && Date.parse(times[0]!) <= Date.parse(times[1]!)
    }),
  'each action says how it ended': ({ actions }) => actions.every(action => STATES.includes(stateOf(action))),
  'an error is said where an action failed, and only there': ({ actions }) =>
    actions.every(action => isText(action['error']) === stateOf(action).endsWith('/FailedActionStatus')),
  'an agent is a person or an organization': ({ actions, byId }) =>
    actions.every(action => idsOf(action['agent']).every(id => isA(byId.get(id), 'Person', 'Organization'))),
} satisfies Record<string, Check>

export type Rule = keyof typeof RULES

function refersToData(property: 'object' | 'result', byId: ReadonlyMap<string, Entity>) {
  return (action: Entity): boolean =>
    action[property] !== undefined &&
    idsOf(action[property]).every(id => isA(byId.get(id), 'File', 'Dataset', 'PropertyValue', 'Collection'))
}

/** The rules that the crate in this folder breaks. */
export function brokenRules(folder: string, document: Document): Rule[] {
  const crate = new Crate(folder, document)
  return (Object.keys(RULES) as Rule[]).filter(rule => !(RULES[rule] as Check)(crate))
}
