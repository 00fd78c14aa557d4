import { MillraceError } from '../../core/errors.ts'
import { parseDuration } from '../../general/units.ts'
import type { ScalerLimits } from './scaler.ts'

/** What `--slurm` and `--nodes min..max` ask for. */
export interface SlurmWish extends ScalerLimits {
  /** Words for sbatch. */
  readonly words: readonly string[]
  /** Nodes of one job. */
  readonly block: number
}

const IDLE = 120_000
const HINT =
  'Write --slurm partition=main,time=1h --nodes 0..8; names are those of sbatch, and block and idle.'

const wrong = (text: string): MillraceError => new MillraceError('MR_NODES', text, { hint: HINT })

/** `partition=main,time=1h` and `0..8`. */
export function parseSlurm(slurm: string, nodes: string | undefined): SlurmWish {
  const [, least, most] = /^(\d+)(?:\.\.(\d+))?$/.exec(nodes ?? '') ?? []
  if (least === undefined) {
    throw wrong(`--slurm needs how many nodes the run may have${nodes ? `, and --nodes is ${nodes}` : ''}`)
  }
  const min = Number(least)
  const max = Number(most ?? least)
  if (max < 1 || max < min) throw wrong(`--nodes ${nodes}: the larger number comes last, and is at least 1`)
  const words: string[] = []
  let block = 1
  let idle = IDLE
  let hasCpus = false
  for (const part of slurm.split(',').filter(Boolean)) {
    const [, key, value] = /^([a-z][a-z-]*)(?:=(.*))?$/.exec(part.trim()) ?? []
    if (key === undefined) throw wrong(`--slurm ${slurm}: '${part}' is not NAME=VALUE`)
    if (key === 'block') {
      block = Number(value)
      if (!Number.isInteger(block) || block < 1) throw wrong(`--slurm ${slurm}: block is a number from 1`)
    } else if (key === 'idle') {
      const given = parseDuration(value ?? '')
      if (given === null) throw wrong(`--slurm ${slurm}: idle is a duration such as 2m`)
      idle = given
    } else if (key === 'time') words.push(`--time=${slurmTime(value ?? '')}`)
    else words.push(value === undefined ? `--${key}` : `--${key}=${value}`)
    if (key === 'cpus-per-task' || key === 'exclusive') hasCpus = true
  }
  // Without more words a job has one CPU of a node.
  if (!hasCpus) words.push('--exclusive')
  return { min, max, idle, words, block: Math.min(block, max) }
}

/** `1h` and `90s` as Slurm writes them; what Slurm writes itself stays. */
export function slurmTime(text: string): string {
  if (!/[a-z]$/i.test(text)) return text
  const milliseconds = parseDuration(text)
  if (milliseconds === null) return text
  const two = (n: number): string => String(n).padStart(2, '0')
  const seconds = Math.max(60, Math.ceil(milliseconds / 1000))
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24]
  return `${days}-${two(hours)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
}

/** What `squeue -o %L` says, in milliseconds; Infinity where there is no limit. */
export function timeLeft(text: string): number {
  const [, days = '0', rest = ''] = /^(?:(\d+)-)?([\d:]+)$/.exec(text.trim()) ?? []
  if (rest === '') return Infinity
  const seconds = rest.split(':').reduce((sum, part) => sum * 60 + Number(part), 0)
  return (Number(days) * 86_400 + seconds) * 1000
}
