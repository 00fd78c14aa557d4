import { spawn } from 'node:child_process'
import { watch as watchFolder } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { State } from '../flow/state.ts'
import { plural } from '../report/format.ts'
import { remark } from './output.ts'

/** Changes come in bunches: an editor writes a file in several steps; milliseconds. */
const CALM = 100

/** Makes, waits for a source or the workflow file to change, and makes again, each time in a process of its own. */
export async function watch(flow: string): Promise<void> {
  const words = process.argv.slice(2).filter(word => word !== '--watch')
  let isOver = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => (isOver = true))
  while (!isOver) {
    await makeOnce(words)
    if (isOver) break
    const sources = sourcesOf(flow)
    remark(`millrace: watching ${plural(sources.size, 'file')} (Ctrl-C ends it)`)
    await changeOf(sources)
  }
}

function makeOnce(words: readonly string[]): Promise<void> {
  const [, program = ''] = process.argv
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...words], { stdio: 'inherit' })
    child.once('error', reject)
    child.once('exit', () => resolve())
  })
}

/** The workflow file, and all that was read and that no task made. */
function sourcesOf(flow: string): Set<string> {
  const root = dirname(flow)
  const { files, records } = new State(resolve(root, '.millrace'))
  const made = new Set<number>()
  const read = new Set<number>()
  for (const { outputs, inputs } of records.all()) {
    for (const output of outputs) made.add(output)
    for (const input of inputs) if (input >= 0) read.add(input)
  }
  const sources = [...read].filter(file => !made.has(file)).map(file => resolve(root, files.path(file)))
  return new Set([flow, ...sources])
}

function changeOf(sources: ReadonlySet<string>): Promise<void> {
  const watchers: FSWatcher[] = []
  return new Promise<void>(resolve => {
    let timer: NodeJS.Timeout | null = null
    const changed = (): void => {
      timer ??= setTimeout(resolve, CALM)
    }
    for (const folder of new Set([...sources].map(path => dirname(path)))) {
      const names = new Set([...sources].filter(path => dirname(path) === folder).map(path => basename(path)))
      const watcher = watchFolder(folder, (_event, name) => {
        if (name === null || names.has(name)) changed()
      })
      watcher.on('error', changed)
      watchers.push(watcher)
    }
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  }).finally(() => {
    for (const watcher of watchers) watcher.close()
  })
}
