import { MillraceError } from '../../core/errors.ts'
import type { JsonNode, Place } from '../../source/json.ts'
import { JsonReader } from './json-reader.ts'
import type { Fields } from './json-reader.ts'
import { LARGE } from './large-json.ts'

/** A task of a workflow instance, in the terms of the simulator. */
export interface WfTask {
  readonly id: string
  /** The program that it runs; tasks of one program are of one kind. */
  readonly kind: string
  readonly parents: readonly string[]
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  /** That it took. */
  readonly seconds: number
  /** Of that time, how much its CPUs were busy: from 0 to 1. */
  readonly share: number
  readonly cpus: number
  /** Bytes. */
  readonly memory: number
  /** Where it stands: file, line and column. */
  readonly place: string
}

export interface WfInstance {
  readonly name: string
  /** Seconds that the recorded run took, if the file says so. */
  readonly makespan: number | null
  /** Each after all that it needs. */
  readonly tasks: readonly WfTask[]
  /** Bytes, by name. */
  readonly files: ReadonlyMap<string, number>
  /** What it was recorded on; empty where the file does not say. */
  readonly machines: readonly WfMachine[]
}

export interface WfMachine {
  readonly name: string
  readonly cpus: number
  /** Bytes. */
  readonly memory: number
}

const TOP = ['name', 'description', 'createdAt', 'schemaVersion', 'author', 'workflow', 'runtimeSystem']
const EXECUTION = ['makespanInSeconds', 'executedAt', 'tasks', 'machines']
const MACHINE = ['nodeName', 'cpu', 'memoryInBytes']
const TASK = ['name', 'id', 'parents', 'children', 'inputFiles', 'outputFiles']
const RUN = [
  'id',
  'runtimeInSeconds',
  'executedAt',
  'command',
  'coreCount',
  'avgCPU',
  'readBytes',
  'writtenBytes',
  'memoryInBytes',
  'energyInKWh',
  'avgPowerInW',
  'priority',
  'machines',
]

interface Given {
  readonly id: string
  readonly at: Place
  readonly parents: { value: string; at: Place }[]
  readonly children: { value: string; at: Place }[]
  readonly reads: { value: string; at: Place }[]
  readonly writes: { value: string; at: Place }[]
}

interface Ran {
  seconds: number
  share: number
  cpus: number
  memory: number
  program: string | null
}

const HINT =
  'It should be WfFormat 1.5 or 1.6: workflow.specification.tasks and files, workflow.execution.tasks.'

/** Characters above which places are looked for only when something is wrong: to keep them takes most of the time. */
const QUICK = 1e6

/**
 * Reads a workflow instance in WfFormat. All problems are reported at once, each with its place; above `large` characters with
 * its path in the file. Fields that the simulator does not use may have any name.
 */
export function readWfFormat(text: string, file: string, large = LARGE, quick = QUICK): WfInstance {
  if (text.length <= quick || text.length > large) return readInstance(text, file, large)
  try {
    return readInstance(text, file, quick)
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'MR_WORKFLOW_FILE') throw error
    return readInstance(text, file, large)
  }
}

function readInstance(text: string, file: string, large: number): WfInstance {
  const reader = new JsonReader(text, file, large)
  const top = reader.object(reader.root, 'the file', TOP)
  if (top) checkVersion(reader, top)
  const workflow =
    top && reader.object(reader.member(top, 'workflow'), 'workflow', ['specification', 'execution'])
  const specification =
    workflow &&
    reader.object(reader.member(workflow, 'specification'), 'workflow.specification', ['tasks', 'files'])
  const execution =
    workflow && reader.object(reader.member(workflow, 'execution'), 'workflow.execution', EXECUTION)
  if (!top || !specification || !execution) {
    reader.expectNone(HINT)
    throw new TypeError('something was wrong and no problem was recorded')
  }
  const files = readFiles(reader, specification)
  const tasks = readTasks(reader, specification)
  const runs = readRuns(reader, execution, tasks)
  const machines = readMachines(reader, execution)
  const makespan = reader.amount(execution, 'makespanInSeconds', LONGEST)
  const name = top.members.has('name') ? reader.text(top, 'name') : file
  checkFiles(reader, tasks, files)
  const parents = findParents(reader, tasks)
  reader.expectNone(HINT)
  const order = inOrder(reader, tasks, parents)
  reader.expectNone('A task cannot need, directly or through others, what comes of itself.')
  return {
    name,
    makespan,
    files,
    machines,
    tasks: order.map(({ id, at, reads, writes }) => {
      const { seconds, share, cpus, memory, program } = runs.get(id) as Ran
      return {
        id,
        kind: program ?? id.replace(/_?(ID)?\d+$/, ''),
        parents: [...(parents.get(id) as Set<string>)],
        reads: reads.map(({ value }) => value),
        writes: writes.map(({ value }) => value),
        seconds,
        share,
        cpus,
        memory,
        place: reader.placeOf(at),
      }
    }),
  }
}

/** Seconds: more than thirty years. */
const LONGEST = 1e9

/** Other versions have other fields, or mean other things by them. */
function checkVersion(reader: JsonReader, top: Fields): void {
  const node = top.members.get('schemaVersion')
  if (!node) return
  const version = reader.text(top, 'schemaVersion')
  // 1.6 adds fields that nothing here needs.
  if (!/^1\.[56](\.|$)/.test(version))
    reader.complain(node.at, `schemaVersion is '${version}', not 1.5 or 1.6`)
}

function readFiles(reader: JsonReader, specification: Fields): Map<string, number> {
  const files = new Map<string, number>()
  const node = specification.members.get('files')
  for (const [i, item] of (node ? reader.items(node, 'workflow.specification.files') : []).entries()) {
    const fields = reader.object(item, `workflow.specification.files[${i}]`, ['id', 'sizeInBytes'])
    if (!fields) continue
    const id = reader.text(fields, 'id')
    if (files.has(id)) reader.complain(fields.at, `file '${id}' is listed twice`)
    reader.member(fields, 'sizeInBytes')
    files.set(id, reader.amount(fields, 'sizeInBytes') ?? 0)
  }
  return files
}

function readTasks(reader: JsonReader, specification: Fields): Map<string, Given> {
  const tasks = new Map<string, Given>()
  const items = reader.items(reader.member(specification, 'tasks'), 'workflow.specification.tasks')
  for (const [i, item] of items.entries()) {
    const fields = reader.object(item, `workflow.specification.tasks[${i}]`, TASK)
    if (!fields) continue
    const id = reader.text(fields, 'id')
    if (tasks.has(id)) reader.complain(fields.at, `task '${id}' is listed twice`)
    tasks.set(id, {
      id,
      at: fields.at,
      parents: reader.texts(fields, 'parents'),
      children: reader.texts(fields, 'children'),
      reads: once(reader.texts(fields, 'inputFiles')),
      writes: once(reader.texts(fields, 'outputFiles')),
    })
  }
  return tasks
}

/** Some tracers list a file of a task several times. */
const once = (files: { value: string; at: Place }[]): { value: string; at: Place }[] => [
  ...new Map(files.map(file => [file.value, file])).values(),
]

function readRuns(
  reader: JsonReader,
  execution: Fields,
  tasks: ReadonlyMap<string, Given>,
): Map<string, Ran> {
  const runs = new Map<string, Ran>()
  const items = reader.items(reader.member(execution, 'tasks'), 'workflow.execution.tasks')
  for (const [i, item] of items.entries()) {
    const fields = reader.object(item, `workflow.execution.tasks[${i}]`, RUN)
    if (!fields) continue
    const id = reader.text(fields, 'id')
    if (!tasks.has(id))
      reader.complain(fields.at, `task '${id}' was executed and is not in the specification`)
    if (runs.has(id)) reader.complain(fields.at, `task '${id}' was executed twice`)
    reader.member(fields, 'runtimeInSeconds')
    const cpus = reader.amount(fields, 'coreCount') ?? 1
    if (!Number.isInteger(cpus) || cpus < 1) reader.complain(fields.at, `task '${id}' ran on ${cpus} cores`)
    const used = reader.amount(fields, 'avgCPU') ?? 100
    runs.set(id, {
      seconds: reader.amount(fields, 'runtimeInSeconds', LONGEST) ?? 0,
      share: Math.min(1, used / 100 / cpus),
      cpus,
      memory: reader.amount(fields, 'memoryInBytes') ?? 0,
      program: programOf(reader, fields),
    })
  }
  for (const { id, at } of tasks.values()) {
    if (!runs.has(id))
      reader.complain(at, `task '${id}' is not in workflow.execution.tasks: its time is unknown`)
  }
  return runs
}

/** Memory is not always recorded: then a machine had what its tasks needed. */
function readMachines(reader: JsonReader, execution: Fields): WfMachine[] {
  const node = execution.members.get('machines')
  const machines: WfMachine[] = []
  for (const [i, item] of (node ? reader.items(node, 'workflow.execution.machines') : []).entries()) {
    const fields = reader.object(item, `workflow.execution.machines[${i}]`, MACHINE)
    const cpu = fields?.members.get('cpu')
    const cpuFields = fields && cpu && reader.object(cpu, `${fields.path}.cpu`, ['coreCount'])
    if (!fields || !cpuFields) continue
    const cpus = reader.amount(cpuFields, 'coreCount') ?? 0
    if (!Number.isInteger(cpus) || cpus < 1) continue
    const name = fields.members.has('nodeName') ? reader.text(fields, 'nodeName') : `machine-${i + 1}`
    machines.push({ name, cpus, memory: reader.amount(fields, 'memoryInBytes') || Number.MAX_SAFE_INTEGER })
  }
  return machines
}

function programOf(reader: JsonReader, fields: Fields): string | null {
  const node: JsonNode | undefined = fields.members.get('command')
  const command = node && reader.object(node, `${fields.path}.command`, ['program', 'arguments'])
  const program = command?.members.has('program') ? reader.text(command, 'program') : ''
  // Others put the whole script there.
  return program === '' || /\s/.test(program.trim()) ? null : program
}

function checkFiles(
  reader: JsonReader,
  tasks: ReadonlyMap<string, Given>,
  files: ReadonlyMap<string, number>,
): void {
  const makers = new Map<string, string>()
  for (const { id, reads, writes } of tasks.values()) {
    for (const { value, at } of [...reads, ...writes]) {
      if (!files.has(value))
        reader.complain(at, `file '${value}' of task '${id}' is not in workflow.specification.files`)
    }
    for (const { value, at } of writes) {
      const other = makers.get(value)
      if (other !== undefined) reader.complain(at, `file '${value}' is written by '${id}' and by '${other}'`)
      makers.set(value, id)
    }
  }
}

/** Parents are named by parents and children, and follow from files. */
function findParents(reader: JsonReader, tasks: ReadonlyMap<string, Given>): Map<string, Set<string>> {
  const parents = new Map<string, Set<string>>()
  for (const id of tasks.keys()) parents.set(id, new Set())
  const maker = new Map<string, string>()
  for (const { id, writes } of tasks.values()) for (const { value } of writes) maker.set(value, id)
  const known = (value: string, at: Place, id: string, what: string): boolean => {
    if (tasks.has(value)) return true
    reader.complain(at, `${what} '${value}' of task '${id}' is not among the tasks`)
    return false
  }
  for (const { id, parents: above, children, reads } of tasks.values()) {
    for (const { value, at } of above) if (known(value, at, id, 'parent')) parents.get(id)?.add(value)
    for (const { value, at } of children) if (known(value, at, id, 'child')) parents.get(value)?.add(id)
    for (const { value } of reads) {
      const made = maker.get(value)
      if (made !== undefined) parents.get(id)?.add(made)
    }
  }
  return parents
}

function inOrder(
  reader: JsonReader,
  tasks: ReadonlyMap<string, Given>,
  parents: ReadonlyMap<string, ReadonlySet<string>>,
): Given[] {
  const missing = new Map<string, number>()
  const children = new Map<string, string[]>()
  for (const [id, above] of parents) {
    missing.set(id, above.size)
    for (const parent of above) {
      const below = children.get(parent)
      if (below) below.push(id)
      else children.set(parent, [id])
    }
  }
  const order = [...tasks.values()].filter(({ id }) => missing.get(id) === 0)
  for (const { id } of order) {
    for (const child of children.get(id) ?? []) {
      const left = (missing.get(child) as number) - 1
      missing.set(child, left)
      if (left === 0) order.push(tasks.get(child) as Given)
    }
  }
  if (order.length < tasks.size) complainOfCycle(reader, tasks, parents, missing)
  return order
}

/** Follows tasks that never become free, from one to one that it needs, until one comes again. */
function complainOfCycle(
  reader: JsonReader,
  tasks: ReadonlyMap<string, Given>,
  parents: ReadonlyMap<string, ReadonlySet<string>>,
  missing: ReadonlyMap<string, number>,
): void {
  const isStuck = (id: string): boolean => (missing.get(id) ?? 0) > 0
  const way = new Set<string>()
  let at = [...tasks.keys()].find(isStuck) as string
  while (!way.has(at)) {
    way.add(at)
    at = [...(parents.get(at) as Set<string>)].find(isStuck) as string
  }
  const all = [...way]
  const circle = all.slice(all.indexOf(at))
  const shown = circle.slice(0, MOST_SHOWN)
  if (circle.length > MOST_SHOWN) shown.push(`(${circle.length - MOST_SHOWN} more)`)
  const text = [...shown, at].join(' needs ')
  reader.complain((tasks.get(at) as Given).at, `tasks need each other in a circle: ${text}`)
}

/** Of a circle of tasks. */
const MOST_SHOWN = 20
