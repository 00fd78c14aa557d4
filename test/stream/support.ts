import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import type { RunOptions } from '../../src/runtime/run-options.ts'
import type { StandardStreams } from '../../src/runtime/standard-output.ts'
import { streamRun, streamRunOnNodes, type StreamRunOptions } from '../../src/runtime/streams/stream-run.ts'
import { type StepCommand, type StreamIo, streamTools, type Tools } from '../../src/stream/index.ts'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import { packageVersion } from '../../src/runtime/version.ts'

/** The tools when they can be built and work here, else the reason to skip. */
export async function toolsOrReason(): Promise<{ tools?: Tools; skip: string | false }> {
  try {
    const tools = await streamTools()
    const { status } = spawnSync(tools.board, ['list'])
    return status === 0 ? { tools, skip: false } : { skip: 'millrace-board does not work here' }
  } catch (error) {
    return {
      skip: `the streaming library is not there: ${error instanceof Error ? error.message.split('\n')[0] : ''}`,
    }
  }
}

const folders: string[] = []
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** A folder with these files, removed when the tests have ended. */
export function folderOf(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-stream-test.'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

/** Collects what a command says. */
export function ears(): StreamIo & { said: () => string; told: () => string } {
  let out = ''
  let err = ''
  return {
    out: text => void (out += text),
    err: text => void (err += text),
    said: () => out,
    told: () => err,
  }
}

/** The same for a run, which writes to streams. */
export const streamsOf = (
  { out, err }: Pick<StreamIo, 'out' | 'err'>,
  terminal: Partial<Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'rows'>> = {},
): StandardStreams => ({
  stdout: { write: (text: string | Uint8Array) => (out(String(text)), true) },
  stderr: { write: (text: string | Uint8Array) => (err(String(text)), true), ...terminal },
  goToSamePlace: () => false,
})

/** How a run on several nodes is shown and recorded in tests. */
export const plainIn = (folder: string): { run: RunOptions } => ({ run: { folder, progress: 'plain' } })

/** What this process has left in shared memory: boards and directories of runs. */
export const leftovers = (): string[] =>
  readdirSync('/dev/shm').filter(
    name => name.includes(`.run${process.pid}.`) || name.includes(`.${process.pid}.`),
  )

export interface Stage {
  in?: string[]
  out?: string[]
  rules?: Record<string, unknown>[]
}

/** A configuration from the little that differs between tests. */
export function configOf(stages: Record<string, Stage>, extra: Record<string, unknown> = {}): string {
  const graph = Object.entries(stages).map(([name, stage]) => ({
    name,
    ...(stage.in === undefined ? {} : { input_stream: stage.in }),
    ...(stage.out === undefined ? {} : { output_stream: stage.out }),
    ...(stage.rules === undefined ? {} : { streaming: stage.rules }),
  }))
  return JSON.stringify({ name: 'test', IO_Graph: graph, ...extra }, null, 2)
}

export function assertClean(): void {
  assert.deepEqual(leftovers(), [])
}

export interface Case {
  stages: Record<string, Stage>
  steps: Record<string, string | string[]>
  extra?: Record<string, unknown>
  files?: Record<string, string>
  options?: StreamRunOptions
  signal?: AbortSignal
  commands?: StepCommand[]
}

/** With STREAM_APART=N each step runs on a node of its own, as far as there are nodes. */
const apart = Number(process.env['STREAM_APART'] ?? 0)
export const isApart = apart > 0
/** With STREAM_SHARED these nodes share the managed directory: `written`, or `synced` when bytes are seen after fsync only. */
const sight = process.env['STREAM_SHARED'] as 'written' | 'synced' | undefined

function runApart(
  file: string,
  commands: readonly StepCommand[],
  place: string,
  io: StreamIo,
  { options = {}, signal }: Case,
): Promise<number> {
  const nodes = parseNodes(`local:${apart}`, () => [])
  const steps = [...new Set(commands.map(({ step }) => step))]
  const placed = commands.map(command => ({
    ...command,
    nodes: [`local${(steps.indexOf(command.step) % apart) + 1}`],
  }))
  const { limit = 60, keep, reserve, place: folder = place } = options
  const shared = sight === undefined ? {} : { dir: folder, sight }
  const more = {
    ...plainIn(place),
    ...shared,
    ...(keep === undefined ? {} : { keep }),
    ...(reserve === undefined ? {} : { reserve }),
  }
  return streamRunOnNodes(
    file,
    placed,
    nodes,
    { place: folder, version: packageVersion(), limit, ...more },
    streamsOf(io),
    signal,
  )
}

export async function run(given: Case): Promise<{ code: number; place: string; said: string; told: string }> {
  const place = folderOf({ 'Config.json': configOf(given.stages, given.extra), ...given.files })
  const io = ears()
  const commands = given.commands ?? Object.entries(given.steps).map(([step, line]) => ({ step, run: line }))
  const options = {
    interval: 20,
    limit: 60,
    run: { folder: place, progress: 'plain' },
    ...(given.options?.dir === undefined ? { place } : {}),
    ...given.options,
  }
  const file = join(place, 'Config.json')
  const code =
    isApart && given.options?.dir === undefined
      ? await runApart(file, commands, place, io, given)
      : await streamRun(file, commands, options, streamsOf(io), given.signal)
  return { code, place, said: io.said(), told: io.told() }
}

export const read = (place: string, name: string): string => readFileSync(join(place, name), 'utf8')
export const pipe: Record<string, Stage> = {
  make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close', mode: 'no_update' }] },
  add: { in: ['numbers'], out: ['sum'] },
}
export const permanent = ['sum']
export const add = "awk '{ s += $1 } END { print s }' numbers > sum"
