import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'
import type { RunEvent } from '../../core/events.ts'
import { writeWhole } from './write-whole.ts'
import { CrateFacts, type CrateTask } from './crate-facts.ts'

type Entity = { '@id': string; '@type': string | string[] } & Record<string, unknown>

type Ref = { '@id': string }

const ref = (id: string): Ref => ({ '@id': id })

/** One is written by itself and not as a list, as RO-Crate advises. */
const refs = (ids: readonly string[]): Ref | Ref[] =>
  ids.length === 1 ? ref(ids[0] as string) : ids.map(ref)

const status = (isOk: boolean): string =>
  `http://schema.org/${isOk ? 'CompletedActionStatus' : 'FailedActionStatus'}`

const PROFILES = [
  ['https://w3id.org/ro/wfrun/process/0.5', 'Process Run Crate', '0.5'],
  ['https://w3id.org/ro/wfrun/workflow/0.5', 'Workflow Run Crate', '0.5'],
  ['https://w3id.org/workflowhub/workflow-ro-crate/1.0', 'Workflow RO-Crate', '1.0'],
] as const

/** What a workflow may be written in, by the ending of its file: a program, a coordination file, a list of steps. */
const LANGUAGES: readonly (readonly [ending: RegExp, name: string, url: string])[] = [
  [/\.[cm]?tsx?$/, 'TypeScript', 'https://www.typescriptlang.org/'],
  [/\.[cm]?jsx?$/, 'JavaScript', 'https://tc39.es/ecma262/'],
  [/\.json$/, 'JSON', 'https://www.json.org/'],
  [/\.ya?ml$/, 'YAML', 'https://yaml.org/'],
]
const ENGINE = '#millrace'

/**
 * Describes a run as a Workflow Run RO-Crate: the program, its inputs and outputs with sizes and SHA-256, and each command that
 * it ran. The crate is the folder of the run; files outside of it are named by their address. Writes ro-crate-metadata.json there
 * and returns its path.
 */
export async function writeCrate(
  events: AsyncIterable<RunEvent>,
  { folder, license }: { folder?: string | undefined; license?: string | undefined } = {},
): Promise<string> {
  const facts = new CrateFacts()
  for await (const event of events) facts.observe(event)
  const root = resolve(folder ?? facts.run?.cwd ?? '.')
  const crate = new Crate(root, facts, license)
  const path = join(root, 'ro-crate-metadata.json')
  await writeWhole(path, [`${JSON.stringify(await crate.document(), null, 2)}\n`])
  return path
}

class Crate {
  readonly #root: string
  readonly #facts: CrateFacts
  readonly #license: string | undefined
  readonly #entities: Entity[] = []
  readonly #files = new Map<string, string | null>()
  readonly #parts: string[] = []

  constructor(root: string, facts: CrateFacts, license: string | undefined) {
    this.#root = root
    this.#facts = facts
    this.#license = license
  }

  async document(): Promise<object> {
    const { run } = this.#facts
    const program = resolve(run?.cwd ?? '.', run?.program ?? '')
    const workflow = this.#idOf(program)
    const inputs = await this.#describe(this.#facts.inputs())
    const outputs = await this.#describe(this.#facts.outputs())
    const tools = this.#tools()
    const source = await fileFacts(program)
    const language = LANGUAGES.find(([ending]) => ending.test(program))
    if (!workflow.startsWith('file:')) this.#parts.push(workflow)
    this.#add({
      '@id': workflow,
      '@type': ['File', 'SoftwareSourceCode', 'ComputationalWorkflow'],
      name: basename(program),
      ...(language ? { programmingLanguage: ref(language[2]) } : {}),
      ...source,
      ...(tools.size > 0 ? { hasPart: refs([...tools.values()]) } : {}),
    })
    if (language) {
      const [, name, url] = language
      this.#add({ '@id': url, '@type': 'ComputerLanguage', name, url: ref(url) })
    }
    this.#add({
      '@id': ENGINE,
      '@type': 'SoftwareApplication',
      name: 'Millrace',
      softwareVersion: run?.version ?? '',
    })
    const actions = [this.#runAction(workflow, inputs, outputs), ...this.#toolActions(tools)]
    this.#frame(workflow, actions)
    return {
      '@context': ['https://w3id.org/ro/crate/1.1/context', 'https://w3id.org/ro/terms/workflow-run/context'],
      '@graph': this.#entities,
    }
  }

  #add(entity: Entity): void {
    this.#entities.push(entity)
  }

  /** The metadata file, the root and the profiles that it keeps to. */
  #frame(workflow: string, actions: readonly string[]): void {
    const { run } = this.#facts
    const began = run?.wallTime ?? new Date(0).toISOString()
    this.#entities.unshift(
      {
        '@id': 'ro-crate-metadata.json',
        '@type': 'CreativeWork',
        conformsTo: [
          ref('https://w3id.org/ro/crate/1.1'),
          ref('https://w3id.org/workflowhub/workflow-ro-crate/1.0'),
        ],
        about: ref('./'),
      },
      {
        '@id': './',
        '@type': 'Dataset',
        name: `Run ${run?.run ?? ''} of ${basename(run?.program ?? 'a program')}`,
        description: `What the run ${run?.run ?? ''} read and made, recorded by Millrace ${run?.version ?? ''}.`,
        datePublished: began,
        license: this.#license ?? 'No licence is stated: ask those who made the data.',
        conformsTo: PROFILES.map(([id]) => ref(id)),
        hasPart: refs([...new Set(this.#parts)]),
        mainEntity: ref(workflow),
        mentions: refs(actions),
      },
    )
    for (const [id, name, version] of PROFILES)
      this.#add({ '@id': id, '@type': 'CreativeWork', name, version })
  }

  #runAction(workflow: string, inputs: readonly string[], outputs: readonly string[]): string {
    const { run, outcome, latest, message } = this.#facts
    const id = `#run-${run?.run ?? ''}`
    const isOk = outcome === 'ok'
    this.#add({
      '@id': id,
      '@type': 'CreateAction',
      name: `Run ${run?.run ?? ''}`,
      description: run?.again ?? [run?.program, ...(run?.args ?? [])].join(' '),
      instrument: ref(workflow),
      startTime: this.#time(0),
      endTime: this.#time(latest),
      object: refs(inputs),
      result: refs(outputs),
      actionStatus: status(isOk),
      ...(isOk ? {} : { error: message ?? outcome ?? 'the run was killed' }),
    })
    return id
  }

  /** Kinds of tasks, as programs that the workflow is made of. */
  #tools(): Map<number, string> {
    const tools = new Map<number, string>()
    for (const [kind, { name, form }] of this.#facts.kinds) {
      const id = `#kind-${kind}`
      tools.set(kind, id)
      this.#add({ '@id': id, '@type': 'SoftwareApplication', name, description: `A ${form} of the program` })
    }
    return tools
  }

  #toolActions(tools: ReadonlyMap<number, string>): string[] {
    return this.#facts.tasks.map((task: CrateTask) => {
      const id = `#task-${task.id}`
      const ids = (versions: readonly number[]): Ref | Ref[] =>
        refs(
          versions.flatMap(version => {
            const path = this.#facts.paths.get(version)
            const known = path === undefined ? undefined : this.#files.get(this.#absolute(path))
            return known ?? []
          }),
        )
      const { name = 'task', form = 'task' } = this.#facts.kinds.get(task.kind) ?? {}
      this.#add({
        '@id': id,
        '@type': 'CreateAction',
        name: `${name}#${task.id}`,
        description: `The ${form} ${name}, called as task ${task.id} of the run`,
        instrument: ref(tools.get(task.kind) ?? ENGINE),
        startTime: this.#time(task.startedAt),
        endTime: this.#time(task.endedAt),
        object: ids(task.reads),
        result: ids(task.writes),
        actionStatus: status(task.error === null),
        ...(task.error === null ? {} : { error: task.error }),
      })
      return id
    })
  }

  /** Files that are there get an entity each; those that are gone, such as temporary ones, get none. */
  async #describe(paths: readonly string[]): Promise<string[]> {
    const ids: string[] = []
    for (const path of paths) {
      const absolute = this.#absolute(path)
      const known = this.#files.get(absolute)
      if (known !== undefined) {
        if (known !== null) ids.push(known)
        continue
      }
      const facts = await fileFacts(absolute)
      const id = facts === null ? null : this.#idOf(absolute, facts['@type'] === 'Dataset')
      this.#files.set(absolute, id)
      if (id === null) continue
      this.#add({ '@id': id, '@type': 'File', name: path, ...facts })
      this.#parts.push(id)
      ids.push(id)
    }
    return ids
  }

  #absolute(path: string): string {
    return isAbsolute(path) ? path : resolve(this.#facts.run?.cwd ?? '.', path)
  }

  #idOf(absolute: string, isFolder = false): string {
    const inside = relative(this.#root, absolute)
    if (inside === '' || inside.startsWith('..') || isAbsolute(inside)) return pathToFileURL(absolute).href
    // Also what has a meaning in addresses: '#', '?', and ':' in the first name.
    return inside.split(sep).map(encodeURIComponent).join('/') + (isFolder ? '/' : '')
  }

  /** With the zone as numbers: the validator of the profile knows no 'Z'. */
  #time(at: number): string {
    const began = Date.parse(this.#facts.run?.wallTime ?? '1970-01-01T00:00:00Z')
    return new Date(began + at).toISOString().replace('Z', '+00:00')
  }
}

/** Null for a file that is not there. */
async function fileFacts(path: string): Promise<Record<string, unknown> | null> {
  const stats = await stat(path).catch(() => null)
  if (!stats) return null
  if (stats.isDirectory()) return { '@type': 'Dataset' }
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return {
    contentSize: String(stats.size),
    sha256: hash.digest('hex'),
    dateModified: stats.mtime.toISOString(),
  }
}
