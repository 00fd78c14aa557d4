import { readFileSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import { setHost } from '../model/client.ts'
import type { Definition } from '../model/definition.ts'
import { DEFINITION } from '../model/task.ts'
import { journalWorkload } from './journal-workload.ts'
import { readRecordedRun } from './recorded-run.ts'
import type { RecordedRun } from './recorded-run.ts'
import { SimulatedHost, programWorkload } from './program.ts'
import { readWfFormat } from './wfformat.ts'
import { wfWorkload } from './wf-workload.ts'
import type { Workload } from './workload.ts'

const PROGRAMS = ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx']

/** A workload, and what was read to make it, so that equal inputs can be told from others. */
export interface Input {
  workload: Workload
  source: string
  /** The run that is replayed, if it is one. */
  recorded?: RecordedRun
}

/** What a file holds: a program, a workflow instance (.json), or the journal of a run. */
export async function loadInput(file: string, load: (url: string) => Promise<unknown>): Promise<Input> {
  const ending = extname(file)
  const bytes = read(file)
  if (PROGRAMS.includes(ending)) return { workload: await program(file, load), source: bytes.toString() }
  if (ending === '.json') {
    const source = bytes.toString()
    return { workload: wfWorkload(readWfFormat(source, file)), source }
  }
  const recorded = await readRecordedRun(file)
  return { workload: journalWorkload(recorded), source: bytes.toString('latin1'), recorded }
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
