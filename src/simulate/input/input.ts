import { constants } from 'node:buffer'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, dirname, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import { checkParameters, giveParameters } from '../../flow/language/params.ts'
import { flowState } from '../../flow/language/registry.ts'
import { setHost } from '../../model/client.ts'
import type { Definition } from '../../model/definition.ts'
import { DEFINITION } from '../../model/task.ts'
import { flowWorkload } from './flow-workload.ts'
import { journalWorkload } from './journal-workload.ts'
import { readRecordedRun } from './recorded-run.ts'
import type { RecordedRun } from './recorded-run.ts'
import { SimulatedHost, programWorkload } from '../program/program.ts'
import { readWfFormat } from './wfformat.ts'
import { wfPlatform, wfWorkload } from './wf-workload.ts'
import type { Platform } from '../machine/platform.ts'
import type { Workload } from './workload.ts'

const PROGRAMS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx']

/** A workload, and a digest of what was read to make it, so that equal inputs can be told from others. */
export interface Input {
  workload: Workload
  source: string
  /** The run that is replayed, if it is one. */
  recorded?: RecordedRun
  /** The machines that a workflow instance was recorded on, where it says so. */
  platform?: Platform
}

/** What a file holds: a program, a workflow instance (.json), or the journal of a run. */
export async function loadInput(
  file: string,
  load: (url: string) => Promise<unknown>,
  words: Words = { operands: [], rest: [] },
): Promise<Input> {
  const ending = extname(file)
  const bytes = read(file)
  const digest = createHash('sha256').update(bytes).digest('hex')
  if (PROGRAMS.includes(ending)) {
    const source = bytes.toString()
    const isFlow = /['"]millrace\/flow['"]/.test(source)
    return {
      workload: await (isFlow ? flow(file, source, load, words) : program(file, load)),
      source: digest,
    }
  }
  if (ending === '.json') {
    const instance = readWfFormat(textOf(bytes, file), file)
    const platform = wfPlatform(instance)
    return {
      workload: wfWorkload(instance, words.splitTime),
      source: words.splitTime ? `${digest} split` : digest,
      ...(platform && { platform }),
    }
  }
  const recorded = await readRecordedRun(file).catch((error: unknown) => {
    if (!(error instanceof MillraceError) || error.code !== 'MR_JOURNAL' || ending === '') throw error
    throw new MillraceError(
      'MR_OPTION',
      `${file} is no journal, and '${ending}' is no ending of a program or workflow`,
      {
        hint: `Name a program (${PROGRAMS.join(', ')}), a workflow instance (.json), or a run from \`millrace runs\`.`,
        cause: error,
      },
    )
  })
  return { workload: journalWorkload(recorded), source: digest, recorded }
}

/** What stands behind the file on the command line: of a workflow, targets and parameters. */
export interface Words {
  readonly operands: readonly string[]
  readonly rest: readonly string[]
  /** Of a workflow instance, recorded times are taken apart into computing and I/O. @default false */
  readonly splitTime?: boolean
}

async function flow(
  file: string,
  source: string,
  load: (url: string) => Promise<unknown>,
  { operands, rest }: Words,
): Promise<Workload> {
  giveParameters(rest)
  const host = new SimulatedHost()
  setHost(host)
  const folder = dirname(file)
  await inFolder(folder, () => load(pathToFileURL(file).href))
  checkParameters(source)
  const { registry } = flowState
  const [first] = registry.targets.keys()
  const all = first === undefined ? [...registry.concrete.keys()] : [first]
  const targets = operands.length > 0 ? operands : all
  if (targets.length === 0) {
    throw new MillraceError('MR_FLOW_FILE', `${basename(file)} does not say what to make`, {
      hint: "Add a target: target('all', […]), or name a file: millrace simulate flow.ts FILE",
    })
  }
  const workload = flowWorkload(basename(file), registry, targets, host)
  return { ...workload, begin: simulation => inFolder(folder, () => workload.begin(simulation)) }
}

/** Paths of a workflow are relative to its folder. */
async function inFolder<T>(folder: string, action: () => T | Promise<T>): Promise<T> {
  const before = process.cwd()
  process.chdir(folder)
  try {
    return await action()
  } finally {
    process.chdir(before)
  }
}

async function program(file: string, load: (url: string) => Promise<unknown>): Promise<Workload> {
  const host = new SimulatedHost()
  setHost(host)
  nameTasks(await load(pathToFileURL(file).href))
  if (host.body) return programWorkload(basename(file), host.body, host)
  throw new MillraceError('MR_SIMULATION', `${file} does not call main`, {
    hint: 'Put its calls of tasks into main(async () => { … }).',
  })
}

/** Tasks without a name are called after the name that their module exports them by. */
function nameTasks(module: unknown): void {
  for (const [name, value] of Object.entries(module as Record<string, unknown>)) {
    const definition = typeof value === 'function' ? definitionOf(value) : undefined
    if (definition?.unnamed && name !== 'default') definition.name = name
  }
}

const definitionOf = (task: Function): Definition | undefined =>
  (task as { [DEFINITION]?: Definition })[DEFINITION]

function textOf(bytes: Buffer, file: string): string {
  if (bytes.length <= constants.MAX_STRING_LENGTH) return bytes.toString()
  const most = Math.floor(constants.MAX_STRING_LENGTH / 1e6)
  throw new MillraceError(
    'MR_WORKFLOW_FILE',
    `${file} is larger than ${most} MB, which is the most that can be read`,
    {
      hint: 'Leave out what is not needed, such as children, commands and machines, or blanks.',
    },
  )
}

function read(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'it does not exist' : code === 'EISDIR' ? 'it is a folder' : String(code)
    throw new MillraceError('MR_OPTION', `${file} cannot be read: ${why}`, {
      hint: 'Name a program, a workflow instance (.json), a journal, or a run from `millrace runs`.',
      cause: error,
    })
  }
}
