import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** What a container or a batch system allows, which the operating system's own numbers do not tell. */

const ROOT = '/sys/fs/cgroup'

/** CPUs, as a fraction if it is one; null when there is no limit. */
export async function cpuLimit(read = readText): Promise<number | null> {
  const limits: number[] = []
  for (const folder of await folders(read)) {
    const [quota = '', period = ''] = ((await read(join(folder, 'cpu.max'))) ?? '').split(/\s+/)
    if (Number(quota) > 0 && Number(period) > 0) limits.push(Number(quota) / Number(period))
  }
  const quota = Number(await read(`${ROOT}/cpu/cpu.cfs_quota_us`))
  const period = Number(await read(`${ROOT}/cpu/cpu.cfs_period_us`))
  if (quota > 0 && period > 0) limits.push(quota / period)
  return limits.length > 0 ? Math.min(...limits) : null
}

/** Bytes; null when there is no limit. */
export async function memoryLimit(read = readText): Promise<number | null> {
  const limits: number[] = []
  for (const folder of await folders(read)) limits.push(Number(await read(join(folder, 'memory.max'))))
  limits.push(Number(await read(`${ROOT}/memory/memory.limit_in_bytes`)))
  // The old form writes a number near 2^63 for none, the new one a word.
  const real = limits.filter(limit => limit > 0 && limit < 2 ** 60)
  return real.length > 0 ? Math.min(...real) : null
}

/** The group of this process and those above it: the tightest limit counts. */
async function folders(read: typeof readText): Promise<string[]> {
  const own = /^0::(\/.*)$/m.exec((await read('/proc/self/cgroup')) ?? '')?.[1] ?? '/'
  const parts = own.split('/').filter(part => part !== '' && part !== '..')
  return [ROOT, ...parts.map((_, index) => join(ROOT, ...parts.slice(0, index + 1)))]
}

async function readText(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch {
    return null
  }
}
