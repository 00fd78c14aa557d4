import { demandOf } from '../../src/core/tasks/demand.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import type { Platform } from '../../src/simulate/machine/platform.ts'
import { cpus, gain, time } from './build.ts'
import type { Build, Use } from './build.ts'
import { mareNostrum4 } from './platforms.ts'
import { isBeyond, percent, points } from './rows.ts'
import type { Row } from './rows.ts'
import { UNSTATED } from './unstated.ts'

/**
 * Eager release (thesis 7.6) on MareNostrum 4. Times are not stated: in each the consumers take, on all CPUs
 * that they have, as long as the largest generator takes, which is 100 s.
 */
const SECONDS = 100
const consumers = (): number => UNSTATED.consuming.value * SECONDS
export const values = (build: Build, count: number): Use[] =>
  Array.from({ length: count }, (): Use => [build.value(), 'out'])

/** 7.6.3.1: 288 readers on six nodes, equal numbers of records of very different sizes; two tasks for each record. */
export const archives =
  (records: number, isEager: boolean, readers = 288) =>
  (build: Build): void => {
    const CONSUMERS = 8 * 48
    const each = Math.ceil(records / readers)
    const seconds = (consumers() * CONSUMERS) / (each * readers * 2)
    const readAll = build.value()
    const made = Array.from({ length: readers }, (_, i) => {
      const own = values(build, each)
      // From a tenth to all of the longest: few readers have the largest records.
      const takes = SECONDS * (0.1 + 0.9 * (i / (readers - 1)) ** 3) * ((records * 288) / (6000 * readers))
      build.task('read_records', takes, own, on('io'), isEager)
      return own
    })
    const all = made.flat().map(([one]): Use => [one, 'in'])
    build.task('read', 0, [...all, [readAll, 'out']], on('io'))
    for (const [record] of all) {
      const [counted] = values(build, 1) as [Use]
      const after: Use[] = isEager ? [] : [[readAll, 'in']]
      const scaled = seconds * (records / 6000)
      build.task('calculate_tf', scaled, [[record, 'in'], ...after, counted], on('compute'))
      build.task('calculate_idf', scaled, [[counted[0], 'in']], on('compute'))
    }
  }

const on = (tag: string): Demand => demandOf(1, 0, [tag])

export const archivePlatform = (reading = 6, computing = 8): Platform => ({
  nodes: mareNostrum4(reading + computing).nodes.map((node, i) => ({
    ...node,
    tags: [i < reading ? 'io' : 'compute'],
  })),
})

/** 7.6.3.2: 2,000 align tasks per 55 GB; in parts of 55 GB, each aligned before the next is read, or as one stream. */
const alignment =
  (parts: number, isEager: boolean) =>
  (build: Build): void => {
    const ALIGNS = 2000
    const seconds = (consumers() * 8 * 48) / ALIGNS
    let before: Use[] = []
    for (let part = 0; part < (isEager ? 1 : parts); part++) {
      const reads = values(build, isEager ? ALIGNS * parts : ALIGNS)
      build.task('get_reads', isEager ? SECONDS * parts : SECONDS, [...before, ...reads], cpus(1), isEager)
      before = reads.map(([read]): Use => {
        const aligned = build.value()
        const uses: Use[] = [
          [read, 'in'],
          [aligned, 'out'],
        ]
        build.task('align', seconds, uses)
        return [aligned, 'in']
      })
    }
  }

/** 7.6.3.3: four tasks decompose a domain each into parts, and one task works on each part. */
export const decomposition =
  (parts: number, isEager: boolean, generators = 4) =>
  (build: Build): void => {
    for (let i = 0; i < generators; i++) {
      const made = values(build, parts)
      build.task('decompose', SECONDS, made, cpus(1), isEager)
      for (const [one] of made) build.task('solve', (consumers() * 8 * 48) / (4 * 800), [[one, 'in']])
    }
  }

export async function eagerRows(): Promise<Row[]> {
  const gains = async (
    sizes: readonly number[],
    write: (size: number, isEager: boolean) => (build: Build) => void,
    platform: Platform,
  ): Promise<number[]> => {
    const found: number[] = []
    for (const size of sizes) {
      found.push(
        gain(await time(write(size, false), { platform }), await time(write(size, true), { platform })),
      )
    }
    return found
  }
  const warc = await gains([1500, 3000, 6000], archives, archivePlatform())
  const align = await gains([1, 2, 4], alignment, mareNostrum4(8))
  const domains = await gains([100, 200, 400, 800], decomposition, mareNostrum4(8))
  const row = (experiment: string, paper: string, found: number[], least: number): Row => {
    const isGrowing = found.every((one, i) => i === 0 || one >= (found[i - 1] as number))
    return {
      experiment,
      paper,
      ours: found.map(percent).join(', '),
      better: '',
      turning: isGrowing ? 'grows' : 'does not grow',
      met: Math.max(...found) >= least && (least > 0 || isGrowing),
      ...(least > 0 && {
        off: points(least, Math.max(...found)),
        isBeyond: isBeyond(least, Math.max(...found)),
      }),
      ...(least === 0.5 && { fitted: true as const }),
    }
  }
  return [
    row('Web archives, eager release, 1500 to 6000 records', 'up to 35%', warc, 0.35),
    row('Pairwise alignment, eager release, 55 to 220 GB', 'grows with the file', align, 0),
    row('Domain decomposition, eager release, 100 to 800 parts', 'grows with the parts', domains, 0),
    row(
      'Eager release, the most that was gained',
      'more than 50%',
      [Math.max(...warc, ...align, ...domains)],
      0.5,
    ),
  ]
}
