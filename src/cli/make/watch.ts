import { spawn } from 'node:child_process'
import { statSync, watch as watchFolder } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { State } from '../../flow/state/state.ts'
import { plural } from '../../report/format.ts'
import { remark } from '../output.ts'

/** Changes come in bunches: an editor writes a file in several steps; milliseconds. */
const CALM = 100

/** What may mean that there is something to do. */
interface Watched {
  /** The workflow file, and all that was read and that no task made. */
  readonly sources: ReadonlySet<string>
  readonly made: ReadonlySet<string>
  /** Folders in which rules looked for files: whatever is new there may be one. */
  readonly listed: ReadonlySet<string>
  readonly flow: string
  /** What sources looked like when the last run read them, where that is known. */
  readonly looks: ReadonlyMap<string, string>
}

/** Makes, waits for a source or the workflow file to change, and makes again, each time in a process of its own. */
export async function watch(flow: string): Promise<void> {
  const words = process.argv.slice(2).filter(word => word !== '--watch')
  let isOver = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => (isOver = true))
  let before = looksOf(sourcesOf(flow, []).sources)
  while (!isOver) {
    const listed = await makeOnce(words)
    if (isOver) break
    const watched = sourcesOf(flow, listed)
    await changeOf(watched, before)
    before = looksOf(watched.sources)
  }
}

/** Gives the folders in which the workflow looked for files. */
function makeOnce(words: readonly string[]): Promise<string[]> {
  const [, program = ''] = process.argv
  let listed: string[] = []
  return new Promise((settle, reject) => {
    const child = spawn(process.execPath, [program, ...words], {
      stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, MILLRACE_WATCHED: '1' },
    })
    const end = (): void => {
      child.kill('SIGTERM')
    }
    // Ctrl-C reaches all processes of the terminal; this does not.
    process.once('SIGTERM', end)
    child.on('message', message => (listed = message as string[]))
    child.once('error', reject)
    child.once('exit', () => {
      process.off('SIGTERM', end)
      settle(listed)
    })
  })
}

function sourcesOf(flow: string, listed: readonly string[]): Watched {
  const root = dirname(flow)
  const { files, records } = new State(resolve(root, '.millrace'))
  const made = new Set<number>()
  const read = new Set<number>()
  for (const { outputs, inputs } of records.all()) {
    for (const output of outputs) made.add(output)
    for (const input of inputs) if (input >= 0) read.add(input)
  }
  const pathOf = (file: number): string => resolve(root, files.path(file))
  const sources = [...read].filter(file => !made.has(file))
  const looks = sources
    .filter(file => files.stamp[file] !== 0)
    .map(file => [pathOf(file), look(files.mtime[file], files.size[file], files.ino[file])] as const)
  return {
    looks: new Map(looks),
    sources: new Set([flow, ...sources.map(pathOf)]),
    made: new Set([...made].map(pathOf)),
    listed: new Set(listed),
    flow,
  }
}

const look = (...numbers: (number | undefined)[]): string => numbers.join(' ')

const lookOf = (path: string): string => {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats ? look(stats.mtimeMs, stats.size, stats.ino) : ''
}

const looksOf = (paths: ReadonlySet<string>): Map<string, string> =>
  new Map([...paths].map(path => [path, lookOf(path)]))

/** `before`: what sources looked like before the last run, which may have read them before they changed. */
function changeOf(watched: Watched, before: ReadonlyMap<string, string>): Promise<void> {
  const { sources, listed, looks } = watched
  const watchers: FSWatcher[] = []
  return new Promise<void>(settle => {
    let timer: NodeJS.Timeout | null = null
    const changed = (): void => {
      timer ??= setTimeout(settle, CALM)
    }
    const folders = new Set([...[...sources].map(path => dirname(path)), ...listed].map(existing))
    for (const folder of folders) {
      const watcher = watchFolder(folder, (event, name) => {
        if (name === null || matters(watched, event, join(folder, name))) changed()
      })
      watcher.on('error', changed)
      watchers.push(watcher)
    }
    remark(`millrace: watching ${plural(sources.size, 'file')} (Ctrl-C ends it)`)
    for (const path of sources) {
      const seen = before.get(path) ?? looks.get(path)
      if (seen !== undefined && seen !== lookOf(path)) changed()
    }
    process.once('SIGINT', () => settle())
    process.once('SIGTERM', () => settle())
  }).finally(() => {
    for (const watcher of watchers) watcher.close()
  })
}

function matters({ sources, made, listed, flow }: Watched, event: string, path: string): boolean {
  if (sources.has(path)) return true
  // What the workflow file imports is most often beside it.
  if (dirname(path) === dirname(flow) && /\.[cm]?[jt]s$/.test(path)) return true
  // A folder on the way to a source, or to where files are looked for, comes or goes.
  if ([...sources, ...listed].some(one => one === path || one.startsWith(`${path}/`))) return true
  const isNew = event === 'rename' && listed.has(dirname(path))
  return isNew && !made.has(path) && !/^\.|~$/.test(basename(path))
}

/** The folder, or what is left above it. */
function existing(folder: string): string {
  let path = folder
  while (path !== dirname(path) && !statSync(path, { throwIfNoEntry: false })?.isDirectory())
    path = dirname(path)
  return path
}
