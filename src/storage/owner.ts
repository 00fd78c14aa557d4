import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** The process that something on a disk belongs to. */
export interface Owner {
  pid: number
  /** When the process was started, in clock ticks: numbers of processes are used again. */
  started: string
  host: string
}

let here: string | undefined

/** Numbers of processes mean nothing on another host, nor in another container on this one. */
function hostNow(): string {
  if (here !== undefined) return here
  try {
    return (here = `${hostname()}/${readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')}`)
  } catch {
    return (here = hostname())
  }
}

export const thisProcess = (): Owner => ({
  pid: process.pid,
  started: startOf(process.pid) ?? '',
  host: hostNow(),
})

/** Whether the process has ended. Of those on other hosts that is not known, so they count as alive. */
export const hasEnded = ({ pid, started, host }: Owner): boolean =>
  host === hostNow() && startOf(pid) !== started

/** Whether a process that a run started is still there, though the run has ended. */
export function hasProcesses(run: string): boolean {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const variables = readFileSync(`/proc/${name}/environ`, 'utf8').split('\0')
      if (variables.includes(`MILLRACE_RUN=${run}`)) return true
    } catch {
      // It has ended, or belongs to another user.
    }
  }
  return false
}

/** The time at which a process was started; null if it does not run. */
function startOf(pid: number): string | null {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program is in parentheses and may hold anything.
    return line.slice(line.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
