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
const LARGEST = 8e6
const TIMES = 3

/**
 * What the model needs to know of a device, found around the run and in the same way for all of them: files of four
 * sizes are written as the tasks write them, one at a time, three times each. The line through the medians says what a file
 * takes by itself, and what a byte takes. Then pairs of the largest are written side by side: where these get more than one file
 * does, that is what the device has, and the line what one stream has of it. All of it is done before the run and once more
 * after it, as a machine that others use is not the same for long.
 */
export class Calibration {
  readonly #folder: string
  readonly #alone = new Map(SIZES.map((bytes): [number, number[]] => [bytes, []]))
  readonly #pairs: number[] = []

  constructor(folder: string) {
    this.#folder = folder
  }

  async measure(): Promise<void> {
    const both = (): Promise<unknown> => Promise.all([this.#save('a', LARGEST), this.#save('b', LARGEST)])
    // First writes to fresh blocks are slower than all later ones.
    await both()
    for (const [bytes, times] of this.#alone) {
      for (let i = 0; i < TIMES; i++) times.push(await timed(() => this.#save('a', bytes)))
    }
    for (let i = 0; i < TIMES; i++) this.#pairs.push(await timed(both))
  }

  get constants(): Constants {
    const { latency, perByte } = line(
      [...this.#alone].map(([bytes, times]): [number, number] => [bytes, median(times)]),
    )
    const one = 1000 / perByte
    const two = (2 * LARGEST * 1000) / Math.max(1, median(this.#pairs) - latency)
    return two > one ? { read: two, write: two, stream: one, latency } : { read: one, write: one, latency }
  }

  async #save(name: string, bytes: number): Promise<void> {
    const path = join(this.#folder, `calibrate-${name}`)
    const file = await open(path, 'w')
    await file.write(Buffer.alloc(bytes, 1))
    await file.sync()
    await file.close()
    rmSync(path)
  }
}

/** Measures the devices before and after the run. */
export async function around<T>(
  folders: Readonly<Record<string, string>>,
  run: () => Promise<T>,
): Promise<{ run: T; constants: Record<string, Constants> }> {
  const all = Object.entries(folders).map(([name, folder]) => ({ name, of: new Calibration(folder) }))
  for (const { of } of all) await of.measure()
  const done = await run()
  for (const { of } of all) await of.measure()
  return { run: done, constants: Object.fromEntries(all.map(({ name, of }) => [name, of.constants])) }
}

async function timed(work: () => unknown): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
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
