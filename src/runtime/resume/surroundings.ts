import { readFileSync, readlinkSync } from 'node:fs'
import { hexOf, digestOf } from '../../store/digest.ts'

/** How people know these two settings. */
export const LANGUAGE = 'the language (LANG, LC_ALL)'
export const TIME_ZONE = 'the time zone (TZ)'

type Environment = Readonly<Record<string, string | undefined>>

/** What programs can be told apart by; `LC_ALL` comes before each, and `LANG` after it. */
const CATEGORIES = ['COLLATE', 'CTYPE', 'MESSAGES', 'MONETARY', 'NUMERIC', 'TIME'].map(name => `LC_${name}`)

/** The language of each kind of text, so that a variable which another one hides does not count. */
export function languageOf(env: Environment): string {
  const ofOne = (name: string): string => {
    const said = env['LC_ALL'] || env[name] || env['LANG'] || 'C'
    return said === 'POSIX' ? 'C' : said
  }
  const all = CATEGORIES.map(ofOne)
  // What messages are written in, where they are not those of C.
  return JSON.stringify([...all, all.every(one => one === 'C') ? '' : (env['LANGUAGE'] ?? '')])
}

/** Its name; without one, that of the machine. */
export function timeZoneOf(env: Environment, localtime = '/etc/localtime'): string {
  const said = env['TZ']
  return said === undefined ? zoneOfMachine(localtime) : zoneName(said)
}

function zoneOfMachine(localtime: string): string {
  try {
    return zoneName(readlinkSync(localtime))
  } catch {
    // It is a copy, or is not there.
  }
  try {
    return hexOf(digestOf(readFileSync(localtime)))
  } catch {
    return 'UTC'
  }
}

/** A zone has many names, and these are of the same. */
function zoneName(said: string): string {
  const name = said.replace(/^:/, '').replace(/^(?:.*\/)?zoneinfo\/(?:posix\/)?/, '')
  return ['', 'Etc/UTC', 'UTC0', 'Zulu', 'Etc/Zulu', 'UCT', 'Etc/UCT', 'Universal', 'Etc/Universal'].includes(
    name,
  )
    ? 'UTC'
    : name
}

/** Names of an allocation, of its machines and of places in them: they say where a program runs, and not what it makes. */
const OF_ALLOCATION = new Set(
  [
    // Where a program is, and who asked for it.
    'PWD OLDPWD TMPDIR TMP TEMP HOSTNAME SHLVL _ XDG_RUNTIME_DIR XDG_SESSION_ID',
    'SSH_CLIENT SSH_CONNECTION SSH_TTY SSH_AUTH_SOCK',
    // Other batch systems than Slurm.
    'PBS_JOBID PBS_JOBCOOKIE PBS_NODEFILE PBS_NODENUM PBS_MOMPORT PBS_TMPDIR PBS_O_HOST',
    'LSB_JOBID LSB_JOBFILENAME LSB_HOSTS LSB_MCPU_HOSTS LSB_DJOB_HOSTFILE LSB_BATCH_JID',
    'PE_HOSTFILE SGE_JOB_SPOOL_DIR OAR_JOB_ID OAR_NODEFILE OAR_NODE_FILE',
    'COBALT_JOBID COBALT_NODEFILE FLUX_JOB_ID FLUX_URI FLUX_JOB_TMPDIR',
  ].flatMap(names => names.split(' ')),
)

/** Those of Slurm that tell allocations and their steps apart. Its sizes, and which task of an array it is, are settings of the program. */
const OF_SLURM =
  /^SLURMD?_(?:(?:HET_|ARRAY_)?JOB_?ID(?:_HET_GROUP_\d+)?|STEP_?ID|(?:JOB_|STEP_)?NODELIST|NODENAME|TASK_PID|SUBMIT_HOST|JOB_(?:START|END)_TIME|LAUNCH_NODE_IPADDR|TOPOLOGY_ADDR|SRUN_COMM_(?:HOST|PORT)|STEP_(?:RESV_PORTS|LAUNCHER_PORT)|TMPDIR|CONF)$/

/** It changes with each allocation, or session, and results do not depend on it. Where one does, its `key` says so. */
export const isOfAllocation = (name: string): boolean => OF_ALLOCATION.has(name) || OF_SLURM.test(name)

/** What a command adds to the environment, less what only hands on one of those. */
export function declaredIn(added: unknown, env: Environment = process.env): unknown {
  if (typeof added !== 'object' || added === null) return added
  const counts = Object.entries(added).filter(([name, value]) => !isOfAllocation(name) || value !== env[name])
  return Object.fromEntries(counts)
}
