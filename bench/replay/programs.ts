import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RecordedRun } from '../../src/simulate/recorded-run.ts'
import { throttledDisk } from '../io/devices.ts'
import { measureWriting, recordProgram } from './recorded.ts'
import type { Constants } from './recorded.ts'

/** A real run, and what was measured of its devices right before. */
export interface Recording {
  run: RecordedRun
  constants: Record<string, Constants>
}

/** MB/s. */
const OVERLAP_DISK = 40
const TIERS_DISK = 20
const SIZES = {
  homogeneous: Array.from({ length: 24 }, () => 4e6),
  heterogeneous: Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? 8e6 : 2e6)),
}
export type Workload = keyof typeof SIZES

export async function recordOverlap(mode: 'io' | 'plain'): Promise<Recording> {
  const disk = throttledDisk(OVERLAP_DISK)
  try {
    const slow = await measureWriting(disk.path, 8e6, 6)
    const args = [mode, disk.path, 16, 300_000_000, 8e6, OVERLAP_DISK, OVERLAP_DISK / 2]
    return { run: await recordProgram('overlap.mjs', args), constants: { slow } }
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
    const constants = {
      slow: await measureWriting(slow.path, 4e6, 6),
      disk: await measureWriting(disk, 4e6, 6),
      memory: await measureWriting(fast, 4e6, 6),
    }
    const args = [policy, fast, disk, slow.path, SIZES[name].join(','), 30_000_000, TIERS_DISK]
    return { run: await recordProgram('tiers.mjs', args), constants }
  } finally {
    slow.close()
    for (const folder of [fast, disk]) rmSync(folder, { recursive: true, force: true })
  }
}
