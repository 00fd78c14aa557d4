import { readFileSync, statSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DeviceDescription } from '../core/io/device.ts'
import type { Learned } from '../core/io/io-core.ts'
import { rateText } from '../core/io/words.ts'
import { someDefinition } from '../model/definition.ts'
import { remember, remembered } from '../storage/device-memory.ts'
import { refusalOf } from '../storage/device-trouble.ts'
import { measureFolder } from '../storage/measure.ts'
import type { RunOptions } from './run-options.ts'

const ofRules: unknown[] = []

/** Rules of workflows are no definitions before they are run, and devices are looked at before that. */
export function ruleAsksFor(bandwidth: unknown): void {
  ofRules.push(bandwidth)
}

const someBandwidth = (is: (bandwidth: unknown) => boolean): boolean =>
  ofRules.some(is) || someDefinition(({ options: { bandwidth } }) => bandwidth !== undefined && is(bandwidth))

/**
 * The devices of this run, with what was measured before where the description does not say it. Without a
 * description there is one, the disk of the working directory, if a task asks for bandwidth. It also is there where
 * all described devices can be full: who finds no room would wait for ever. Then it takes what has no room elsewhere.
 */
export function knownDevices(described: readonly DeviceDescription[]): DeviceDescription[] {
  const asks = (): boolean => someBandwidth(() => true)
  const disk: DeviceDescription = {
    name: described.some(({ name }) => name === 'disk') ? 'working folder' : 'disk',
    path: process.cwd(),
    read: null,
    write: null,
    capacity: null,
  }
  const isFull = described.length > 0 && described.every(({ capacity }) => capacity !== null)
  const needsDisk = described.length === 0 ? asks() : isFull
  const twin = described.find(({ path }) => isOnOneDisk(path, disk.path))
  const overflow = {
    ...disk,
    ...(isFull ? { lastResort: true } : {}),
    ...(twin ? { read: twin.read, write: twin.write, sharesWith: twin.name } : {}),
  }
  const devices = needsDisk ? [...described, overflow] : described
  return devices.map(device => {
    if (device.read !== null && device.write !== null) return device
    const known = remembered(device.path)
    return {
      ...device,
      read: device.read ?? known?.read ?? null,
      write: device.write ?? known?.write ?? null,
    }
  })
}

function isOnOneDisk(one: string, other: string): boolean {
  const [a, b] = [one, other].map(path => statSync(path, { throwIfNoEntry: false })?.dev)
  return a !== undefined && a === b
}

export interface Remark {
  level: 'info' | 'warning'
  text: string
}

/**
 * Measures unknown devices once: the next run remembers. A device that cannot be measured stays unknown.
 * Returns what a person should know of it. Who only adapts needs no bandwidth, unless it puts devices in order.
 */
export async function measureUnknown(described: readonly DeviceDescription[]): Promise<Remark[]> {
  const devices = knownDevices(described)
  const asks = someBandwidth(bandwidth => bandwidth !== 'adaptive' || devices.length > 1)
  const remarks: Remark[] = []
  for (const { name, path, read, write, sharesWith } of asks ? devices : []) {
    if ((read !== null && write !== null) || sharesWith !== undefined) continue
    try {
      const measured = await measureFolder(path)
      remember(path, measured)
      const found = `writes ${rateText(measured.write)}, reads ${rateText(measured.read)}`
      remarks.push({ level: 'info', text: `measured ${name} (${path}): ${found}; later runs remember it` })
    } catch (error) {
      // A device that cannot be used at all is reported as such.
      if ((await refusalOf({ name, path })) !== null) continue
      const why = error instanceof Error ? error.message : String(error)
      const text = `the bandwidth of ${name} (${path}) is not known: ${why}`
      remarks.push({
        level: 'warning',
        text: `${text}; describe it, or tasks with a fixed bandwidth are not held back there`,
      })
    }
  }
  return remarks
}

const learnedFile = ({ folder }: RunOptions): string =>
  join(folder ?? process.cwd(), '.millrace', 'learned.json')

/** What earlier runs in this folder have learned about limits. What is not as they wrote it is learned again. */
export function learnedBefore(options: RunOptions): Learned[] {
  try {
    const found: unknown = JSON.parse(readFileSync(learnedFile(options), 'utf8'))
    return Array.isArray(found) ? found.filter(isLearned) : []
  } catch {
    return []
  }
}

function isLearned(one: Partial<Learned> | null): one is Learned {
  const isTrial = (trial: Partial<Learned['trials'][number]> | null): boolean =>
    isPositive(trial?.bandwidth) && isPositive(trial?.concurrency) && isPositive(trial?.mean)
  if (typeof one?.kind !== 'string' || typeof one.device !== 'string') return false
  return isPositive(one.bandwidth) && Array.isArray(one.trials) && one.trials.every(isTrial)
}

const isPositive = (value: unknown): boolean => typeof value === 'number' && value > 0 && value < Infinity

/** Keeps what this run has learned beside what others have. */
export async function keepLearned(options: RunOptions, learned: readonly Learned[]): Promise<void> {
  if (learned.length === 0 || options.journal === false) return
  const isNew = ({ kind, device }: Learned): boolean =>
    !learned.some(one => one.kind === kind && one.device === device)
  const all = [...learnedBefore(options).filter(isNew), ...learned]
  const file = learnedFile(options)
  try {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(`${file}.${process.pid}`, JSON.stringify(all, null, 2))
    await rename(`${file}.${process.pid}`, file)
  } catch {
    // A folder that cannot be written has been reported already.
  }
}
