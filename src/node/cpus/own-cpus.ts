import { readFileSync } from 'node:fs'

/** Numbers of the CPUs that this process may use. */
export const ownCpus = (status = readStatus()): number[] =>
  listed(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '')

/** The numbers of a list such as `0-3,8`. */
export const listed = (list: string): number[] =>
  list.split(',').flatMap(part => {
    const [first, last = first] = part.split('-').map(Number)
    if (first === undefined || last === undefined || Number.isNaN(first) || part === '') return []
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })

function readStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8')
  } catch {
    return ''
  }
}
