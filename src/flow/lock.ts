import { linkSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { MillraceError } from '../core/errors.ts'

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
 * Takes the lock or says who has it; a lock of a process that has ended is nobody's. Two who find such a one must not both
 * take it away, the second that of the first: whoever does so has a lock for that.
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
      expectNoHolder(path)
      const release = takeLock(`${path}.old`)
      try {
        expectNoHolder(path)
        rmSync(path, { force: true })
      } finally {
        release()
      }
    }
  } finally {
    unlinkSync(own)
  }
}

function expectNoHolder(path: string): void {
  const holder = holderOf(path)
  if (holder === null) return
  throw new MillraceError('MR_FLOW_STATE', `another run (process ${holder}) works in this folder`, {
    hint: 'Wait for it, or stop it.',
  })
}

function holderOf(path: string): string | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return null
  }
  const [pid = '', born] = text.trim().split(' ')
  const found = bornAt(Number(pid))
  return found !== null && found === born ? pid : null
}
