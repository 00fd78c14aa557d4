import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const cli = (): string | undefined =>
  ['../bin/millrace.js', '../../../bin/millrace.js']
    .map(path => fileURLToPath(new URL(path, import.meta.url)))
    .find(existsSync)

/**
 * A shell that outlives this process, should it be killed: it then ends the workflow as `stream down` does, so that
 * complete files are in their place and nothing is left in memory. Told that all went well, it goes.
 */
export function watchOver(workflow: string, keep: boolean): () => void {
  const command = cli()
  if (command === undefined) return () => {}
  const down = [
    'stream',
    'down',
    '--workflow',
    workflow,
    '--force',
    '--wait',
    '5',
    ...(keep ? ['--keep'] : []),
  ]
  const child = spawn('/bin/sh', ['-c', 'read word || exec "$@"', 'sh', process.execPath, command, ...down], {
    detached: true, // a Ctrl-C is not for it
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  })
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  child.unref()
  return () => child.stdin.end('done\n')
}
