import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RecordedRun } from '../../src/simulate/input/recorded-run.ts'
import { throttledDisk } from '../io/devices.ts'
import { around } from './calibrate.ts'
import type { Constants } from './calibrate.ts'
import { recordProgram } from './recorded.ts'

/** A real run, and what was measured of its devices right before and after. */
export interface Recording {
  run: RecordedRun
  constants: Record<string, Constants>
}

/** MB/s. */
const OVERLAP_DISK = 40
const TIERS_DISK = 20
const PHASES = 3
const SIZES = {
  homogeneous: Array.from({ length: 8 }, () => 4e6),
  heterogeneous: Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? 6e6 : 2e6)),
}
export type Workload = keyof typeof SIZES

export async function recordOverlap(mode: 'io' | 'plain'): Promise<Recording> {
  const disk = throttledDisk(OVERLAP_DISK)
  try {
    // Two checkpoints at a time, each asking for half of the disk.
    const args = [mode === 'io' ? 2 : mode, disk.path, 16, 300_000_000, 8e6, OVERLAP_DISK]
    return await around({ slow: disk.path }, () => recordProgram('overlap.mjs', args))
  } finally {
    disk.close()
  }
}

/** `policy` is that of the I/O, or `slow` for the lowest layer alone. */
export async function recordTiers(name: Workload, policy: string): Promise<Recording> {
  const slow = throttledDisk(TIERS_DISK)
  const fast = mkdtempSync('/dev/shm/millrace-bench-replay-')
  const disk = mkdtempSync(join(tmpdir(), 'millrace-bench-replay-'))
  try {
    const args = [policy, fast, disk, slow.path, PHASES, SIZES[name].join(','), 200_000_000, TIERS_DISK]
    const folders = { slow: slow.path, disk, memory: fast }
    return await around(folders, () => recordProgram('tiers.mjs', args))
  } finally {
    slow.close()
    for (const folder of [fast, disk]) rmSync(folder, { recursive: true, force: true })
  }
}
