import { readFileSync } from 'node:fs'

/** Numbers of the CPUs that this process may use: lane i of the node is the i-th of them. */
export function ownCpus(status = readStatus()): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? ''
  return list.split(',').flatMap(part => {
    const [first, last = first] = part.split('-').map(Number)
    if (first === undefined || last === undefined || Number.isNaN(first) || part === '') return []
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

function readStatus(): string {
  try {
    return readFileSync('/proc/self/status', 'utf8')
  } catch {
    return ''
  }
}
