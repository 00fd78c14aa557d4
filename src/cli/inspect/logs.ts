import { createReadStream, existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { findRun } from '../../report/journal/runs.ts'
import { eventsOf } from './events-of.ts'
import { findTask } from './find-task.ts'
import { paintFor, remark } from '../output.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** `millrace logs`: what was printed on stdout, as it was printed; everything about it on stderr. */
export async function execute(given: Given): Promise<void> {
  const [asked = '', runName = 'last'] = given.operands
  const run = await findRun(process.cwd(), runName)
  const task = await findTask(eventsOf(run), asked)
  const name = `${task.kind}#${task.id}`
  const paint = paintFor(process.stderr)
  if (task.among > 1) {
    remark(
      `${task.among} tasks are called ${task.kind}; this is ${name}, the first${task.failed ? ' that failed' : ''}.`,
    )
  }
  const folder = join(dirname(run.journal), 'logs')
  const attempts = await attemptsOf(folder, task.id)
  const wanted = valueOf(given, 'attempt')
  const shown = attempts.filter(attempt => wanted === undefined || attempt === Number(wanted))
  if (shown.length === 0) {
    if (wanted !== undefined && attempts.length > 0) {
      throw new MillraceError('MR_JOURNAL', `${name} has no log of attempt ${wanted}`, {
        hint: `Attempts that printed: ${attempts.join(', ')}.`,
      })
    }
    return remark(`${name} printed nothing.`)
  }
  for (const attempt of shown) {
    if (attempts.length > 1) remark(paint.dim(`attempt ${attempt}`))
    await copyOut(join(folder, `${task.id}.${attempt}.log`))
  }
}

async function attemptsOf(folder: string, task: number): Promise<number[]> {
  if (!existsSync(folder)) return []
  const names = await readdir(folder)
  return names
    .map(name => /^(\d+)\.(\d+)\.log$/.exec(name))
    .filter(match => match !== null && Number(match[1]) === task)
    .map(match => Number(match?.[2]))
    .sort((a, b) => a - b)
}

function copyOut(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    createReadStream(path).on('error', reject).on('end', resolve).pipe(process.stdout, { end: false })
  })
}
