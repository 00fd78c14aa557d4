import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import type { DeviceDescription } from '../core/io/device.ts'
import { IO_POLICIES } from '../core/io/io-policy.ts'
import type { IoOptions } from '../core/io/io-core.ts'
import { LEARNING_WAYS } from '../core/io/trial-registry.ts'
import type { LearningWay } from '../core/io/trial-registry.ts'
import { nearest } from '../general/nearest.ts'
import { parseBytes, parseCount } from '../general/units.ts'
import type { MachineNode } from '../storage/machine-file.ts'
import type { RunOptions } from './run-options.ts'

/** The threads behind node:fs are given their number by this variable, once per process. */
const POOL = 'UV_THREADPOOL_SIZE'
const USUAL_POOL = 4
/** In a small pool file calls wait for each other, but commands and connections do not, and there is always a next call. */
const LEAST_EXECUTORS = 16

/**
 * I/O tasks at one time. More than there are threads behind node:fs would wait for each other; and some are to be
 * left for Millrace's own files.
 */
export function ioExecutors({ ioExecutors: given }: RunOptions, described: MachineNode | null): number {
  if (given !== undefined) {
    const count = parseCount(given)
    if (count !== null && count > 0) return count
    throw new MillraceError(
      'MR_UNIT',
      `ioExecutors is '${String(given)}', which is not a whole number from 1`,
    )
  }
  const pool = Number(process.env[POOL]) || USUAL_POOL
  return described?.ioExecutors ?? Math.max(LEAST_EXECUTORS, pool - Math.floor(pool / 8))
}

/** The devices that the description gives, with paths that hold wherever the program goes. */
export function describedStorage(
  file: string | undefined,
  described: MachineNode | null,
): DeviceDescription[] {
  const devices: DeviceDescription[] = []
  for (const device of described?.storage ?? []) {
    const { name, path, read, write, capacity, shared, cpus, maxIntermediate } = device
    if (path === null) continue
    const place = resolve(dirname(resolve(file ?? '.')), path)
    devices.push({
      name,
      path: place,
      read,
      write,
      capacity,
      shared,
      ...(cpus ? { cpus } : {}),
      ...(maxIntermediate === null ? {} : { maxIntermediate }),
    })
  }
  return devices
}

/** A device whose folder is missing is made, if only its last part is; else its disk is not there, and the run is refused. */
export function makeFolders(devices: readonly DeviceDescription[]): void {
  for (const { name, path } of devices) {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) continue
    if (found) throw notThere(name, path, 'is not a folder')
    try {
      mkdirSync(path)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST') continue
      throw notThere(name, path, code === 'ENOENT' ? 'is not there, nor is the folder above' : `(${code})`)
    }
  }
}

const notThere = (name: string, path: string, why: string): MillraceError =>
  new MillraceError('MR_MACHINE', `the device ${name} cannot be used: ${path} ${why}`, {
    hint: 'Mount the device, make its folder, or take it out of the machine description.',
  })

export const FLUSH_MODES = ['off', 'idle', 'always'] as const

/** How the core is to treat I/O. */
export function ioOptions(options: RunOptions, layers: number): IoOptions {
  const { ioPolicy, flush, prefetch, maxIntermediate, learning, learningShare } = options
  const io: IoOptions = { flush: layers > 1 ? 'always' : 'off' }
  if (ioPolicy !== undefined) io.ioPolicy = oneOf('ioPolicy', ioPolicy, IO_POLICIES)
  if (flush !== undefined) io.flush = oneOf('flush', flush, FLUSH_MODES) as (typeof FLUSH_MODES)[number]
  if (prefetch !== undefined) io.prefetch = prefetch
  if (learning !== undefined) io.learning = oneOf('learning', learning, LEARNING_WAYS) as LearningWay
  if (learningShare !== undefined) {
    const share = Number(learningShare)
    if (!(share >= 0 && share <= 1)) {
      throw new MillraceError('MR_OPTION', `learningShare is '${learningShare}', which is not from 0 to 1`)
    }
    io.learningShare = share
  }
  if (maxIntermediate !== undefined) {
    const bytes = parseBytes(maxIntermediate)
    if (bytes === null || bytes === 0) {
      throw new MillraceError(
        'MR_UNIT',
        `maxIntermediate is '${maxIntermediate}', which is not a size such as 50GB`,
      )
    }
    io.maxIntermediate = bytes
  }
  return io
}

function oneOf(option: string, value: string, choices: readonly string[]): string {
  if (choices.includes(value)) return value
  const close = nearest(value, choices)
  throw new MillraceError(
    option === 'ioPolicy' ? 'MR_POLICY' : 'MR_OPTION',
    `${option} cannot be '${value}'${close ? `; did you mean '${close}'?` : ''}`,
    { hint: `It is one of ${choices.join(', ')}.` },
  )
}
