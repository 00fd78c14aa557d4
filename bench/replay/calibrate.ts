import { rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

/** What was found of a device before the run, in bytes per second and milliseconds. */
export interface Constants {
  read: number
  write: number
  /** Bytes per second that one file gets, where several together get more. */
  stream?: number
  /** Before each file. */
  latency: number
}

const SIZES = [1e6, 2e6, 4e6, 8e6]
const TIMES = 3

/**
 * What the model needs to know of a device, found before the run and in the same way for all of them: files of
 * four sizes are written as the tasks write them, one at a time, three times each. The line through the medians says what
 * a file takes by itself, and what a byte takes. Then pairs of the largest are written side by side: where these get more
 * than one file does, that is what the device has, and the line what one stream has of it.
 */
export async function calibrate(folder: string): Promise<Constants> {
  const save = async (name: string, bytes: number): Promise<void> => {
    const path = join(folder, `calibrate-${name}`)
    const file = await open(path, 'w')
    await file.write(Buffer.alloc(bytes, 1))
    await file.sync()
    await file.close()
    rmSync(path)
  }
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const began = performance.now()
    await work()
    return performance.now() - began
  }
  const largest = SIZES.at(-1) as number
  // First writes to fresh blocks are slower than all later ones.
  await Promise.all([save('a', largest), save('b', largest)])
  const points: [bytes: number, milliseconds: number][] = []
  for (const bytes of SIZES) {
    const times: number[] = []
    for (let i = 0; i < TIMES; i++) times.push(await timed(() => save('a', bytes)))
    points.push([bytes, median(times)])
  }
  const pairs: number[] = []
  for (let i = 0; i < TIMES; i++) {
    pairs.push(await timed(() => Promise.all([save('a', largest), save('b', largest)])))
  }
  const { latency, perByte } = line(points)
  const one = 1000 / perByte
  const two = (2 * largest * 1000) / Math.max(1, median(pairs) - latency)
  return two > one ? { read: two, write: two, stream: one, latency } : { read: one, write: one, latency }
}

function line(points: readonly [number, number][]): { latency: number; perByte: number } {
  const mean = (which: 0 | 1): number => points.reduce((sum, point) => sum + point[which], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const both = points.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0)
  const alone = points.reduce((sum, [a]) => sum + (a - x) ** 2, 0)
  const slope = both / alone
  const latency = y - slope * x
  // Through the origin where a file costs nothing by itself, or the noise says so.
  return latency > 0 && slope > 0 ? { latency, perByte: slope } : { latency: 0, perByte: y / x }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] as number
