import { existsSync } from 'node:fs'
import { formatBytes } from '../../report/format.ts'
import { describedNode } from '../../runtime/describe-node.ts'
import { describedStorage } from '../../runtime/describe-storage.ts'
import { remember } from '../../storage/device-memory.ts'
import { refusalOf } from '../../storage/device-trouble.ts'
import { measureFolder } from '../../storage/measure.ts'
import type { Finding } from './doctor-checks.ts'

/** Measures each device of the description, or the disk of this folder, and remembers what it found. */
export async function measureDevices(
  machine = process.env['MILLRACE_MACHINE'] || undefined,
): Promise<{ check: string; finding: Finding }[]> {
  const options = machine === undefined ? {} : { machine }
  const described = describedStorage(machine, describedNode(options))
  const devices = described.length > 0 ? described : [{ name: 'disk', path: process.cwd() }]
  const findings: { check: string; finding: Finding }[] = []
  for (const { name, path } of devices) findings.push({ check: name, finding: await measureOne(path) })
  return findings
}

async function measureOne(path: string): Promise<Finding> {
  try {
    const measured = await measureFolder(path)
    remember(path, measured)
    const { read, write } = measured
    return { state: 'ok', found: `${path}: writes ${formatBytes(write)}/s, reads ${formatBytes(read)}/s` }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { state: 'fail', found: `${path} could not be measured: ${why}`, todo: await todoFor(path) }
  }
}

async function todoFor(path: string): Promise<string> {
  if (!existsSync(path)) return 'Mount it or make the folder, or leave it out of the description.'
  if ((await refusalOf({ name: '', path })) !== null) return 'Make it writable, or leave it out.'
  return 'Make room there, or write its bandwidth into the description.'
}
