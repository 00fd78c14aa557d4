import { readFileSync } from 'node:fs'

/** Milliseconds on the clock that all processes of a machine share. */
export const monotonic = (): number => Number(process.hrtime.bigint()) / 1e6

/** Of a machine since its start: where it is the same, so is the clock. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}
