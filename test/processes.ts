// What tests ask of processes and of time.
import { readFileSync } from 'node:fs'

/** It is there, and has not ended: a process that its parent has not asked for yet has. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits until the condition holds, at most `limit` ms; says whether it did. */
export async function eventually(condition: () => boolean, limit = 60_000): Promise<boolean> {
  for (const end = Date.now() + limit; Date.now() < end;) {
    if (condition()) return true
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return condition()
}
