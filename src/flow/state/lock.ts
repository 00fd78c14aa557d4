import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { MillraceError } from '../../core/errors.ts'

/** When the process began, in ticks since boot: a process id alone may have been given to another since. */
function bornAt(pid: number): string | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')')).split(' ')[20] ?? ''
  } catch {
    return null
  }
}

/**
 * Takes the lock or says who has it; a lock of a process that has ended is free. Two processes that find one must not both
 * remove it, the second that of the first: removing needs a lock of its own.
 */
export function takeLock(path: string): () => void {
  const own = `${path}.${process.pid}`
  try {
    writeFileSync(own, `${process.pid} ${bornAt(process.pid)}\n`)
  } catch (cause) {
    rmSync(own, { force: true })
    throw new MillraceError('MR_FLOW_STATE', `${path} cannot be written: ${(cause as Error).message}`, {
      cause,
    })
  }
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        linkSync(own, path)
        return () => rmSync(path, { force: true })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt > 5) throw error
      }
      if (!isLeftBehind(path)) continue
      const release = takeLock(`${path}.old`)
      try {
        if (isLeftBehind(path)) rmSync(path, { force: true })
      } finally {
        release()
      }
    }
  } finally {
    unlinkSync(own)
  }
}

/** Its holder has ended. False if the lock is gone: another process may have the next one already. */
function isLeftBehind(path: string): boolean {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  const [pid = '', born] = text.trim().split(' ')
  const found = bornAt(Number(pid))
  if (found === null || found !== born) return true
  throw new MillraceError('MR_FLOW_STATE', `another run (process ${pid}) works in this folder`, {
    hint: 'Wait for it, or stop it.',
  })
}
