// Processes of this machine, as Linux tells of them; elsewhere there are none to see.
import { readFileSync, readdirSync } from 'node:fs'

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Gone, or not ours to look into.
    return ''
  }
}

/** All that run: pid, parent, state, age in seconds, and the command line. */
function all() {
  let names = []
  try {
    names = readdirSync('/proc')
  } catch {
    return []
  }
  const uptime = Number(read('/proc/uptime').split(' ')[0])
  return names
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      // The name of the program stands in brackets, and may have spaces and brackets in it.
      const text = read(`/proc/${name}/stat`)
      const [state, parent, ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      if (!text || state === 'Z' || state === 'X') return []
      const words = read(`/proc/${name}/cmdline`).split('\0').join(' ').trim()
      const program = words || text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
      // In ticks, of which Linux tells 100 for each second.
      const age = Math.max(0, Math.round(uptime - Number(rest[17]) / 100))
      return [{ pid: Number(name), parent: Number(parent), state, age, program }]
    })
}

/** Those that come from this process, and those that have this line in their environment. */
export function family(pid, line) {
  const found = all()
  const isMember = new Set([pid])
  const mark = `\0${line}\0`
  for (const one of found) if (`\0${read(`/proc/${one.pid}/environ`)}`.includes(mark)) isMember.add(one.pid)
  for (let size = 0; size < isMember.size;) {
    size = isMember.size
    for (const one of found) if (isMember.has(one.parent)) isMember.add(one.pid)
  }
  return found.filter(one => isMember.has(one.pid) && one.pid !== process.pid)
}

/** Ends them all, and those that they start meanwhile. */
export function end(pid, line) {
  for (let round = 0; round < 10; round++) {
    const members = family(pid, line)
    if (members.length === 0) return
    for (const member of members) {
      try {
        process.kill(member.pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  }
}

export const isAlive = pid => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

export const describe = ({ pid, parent, state, age, program }) =>
  `${String(pid).padStart(8)} of ${parent}, ${state}, ${age} s: ${program.slice(0, 200)}`
