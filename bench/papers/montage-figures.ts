import { fifo, lifo, lifoHrf, rank } from '../../src/core/schedule/policy.ts'
import { gain } from './build.ts'
import { traced } from './montage.ts'
import { parts, percent, points } from './rows.ts'
import type { Row } from './rows.ts'
import { atOnce, most, ofKind, over } from './timeline.ts'
import type { Span, Timeline } from './timeline.ts'

/**
 * Figures 13 to 19 of Pwrake: how many tasks ran at a time on 96 cores. The curves are pictures; what the text says of
 * them is checked.
 */
const CORES = 96
/** "Close to 96 almost all the time" is read as this share of the cores, for this share of the time; "alternately" as half of the tasks. */
const MOST = 0.9
const HALF = 0.5

/** How many of the mDiff tasks started while there were mProjectPP tasks that had not. */
function amongProjections(spans: readonly Span[]): number {
  const last = Math.max(...ofKind(spans, 'mProjectPP').map(({ from }) => from))
  const differences = ofKind(spans, 'mDiff')
  return differences.filter(({ from }) => from < last).length / differences.length
}

/** The part of the run before mBgModel, which runs alone: when it ends, how much of it all cores have tasks, and seconds that one core is idle. */
function firstPart({ spans }: Timeline): { end: number; full: number; idle: number; falls: number } {
  const end = Math.max(...ofKind(spans, 'mFitplane').map(({ to }) => to))
  const steps = atOnce(spans)
  const full = over(steps, count => (count >= MOST * CORES ? 1 : 0), [0, end]) / end
  const idle = over(steps, count => (CORES - count) / CORES, [0, end])
  const isFew = ([at, count]: readonly [number, number]): boolean => at < end && count < MOST * CORES
  // From when on there are no longer enough of them until the end of it.
  let falls = end
  for (const step of [...steps].reverse()) {
    if (step[0] >= end) continue
    if (!isFew(step)) break
    falls = step[0]
  }
  return { end, full, idle, falls }
}

const seconds = (value: number): string => `${value.toFixed(1)} s`

export async function montageFigures(): Promise<Row[]> {
  const divided = {
    fifo: await traced(fifo, 'greedy'),
    lifo: await traced(lifo, 'greedy'),
    hybrid: await traced(lifoHrf, 'greedy'),
    rank: await traced(rank, 'greedy'),
  }
  const uses = Object.values(divided).map(({ outcome }) => outcome.cpuUse)
  const [inOrder = 0, last = 0, hybrid = 0, equal = 0] = uses
  const [ordered, latest, both, ranked] = Object.values(divided).map(firstPart) as [
    ReturnType<typeof firstPart>,
    ReturnType<typeof firstPart>,
    ReturnType<typeof firstPart>,
    ReturnType<typeof firstPart>,
  ]
  const mixed = Object.values(divided).map(({ spans }) => amongProjections(spans))
  const [fifoMixed = 0, lifoMixed = 0, hybridMixed = 0] = mixed
  const endings = [divided.hybrid, divided.rank].map(({ outcome }) => outcome.tasksEnded)
  const [hybridEnd = 0, rankEnd = 0] = endings
  const differences = atOnce(ofKind(divided.rank.spans, 'mDiff'))
  const over48 = over(differences, count => (count > CORES / 2 ? 1 : 0)) / ranked.end
  const near = [await traced(lifoHrf), await traced(rank)] as const
  const nearTimes = near.map(({ outcome }) => outcome.tasksEnded) as [number, number]
  const equalized = gain(...nearTimes)
  const [free, steady] = near.map(({ spans }) => atOnce(ofKind(spans, 'mDiff')))
  const peaks = [most(free ?? []), most(steady ?? [], [20, 60])] as const
  return [
    {
      experiment: 'Montage, figure 13: core utilization with FIFO, LIFO, LIFO+HRF, Rank+HRF at 96 cores',
      paper: 'LIFO about 84%, the others 87 to 88%',
      ours: uses.map(percent).join(', '),
      better: '',
      turning: `LIFO ${last < hybrid ? 'lower' : 'not lower'} than LIFO+HRF`,
      met: last < Math.min(inOrder, hybrid, equal),
      off: `LIFO ${points(0.84, last)}, LIFO+HRF ${points(0.875, hybrid)}`,
    },
    {
      experiment: 'Montage, figure 14: FIFO, tasks at a time',
      paper: 'close to 96 nearly always; all mProjectPP, then all mDiff',
      ours: `90 or more for ${percent(ordered.full)} of the first part; ${percent(fifoMixed)} of mDiff before the last mProjectPP`,
      better: '',
      turning: '',
      met: ordered.full >= MOST && fifoMixed <= 1 - MOST,
    },
    {
      experiment: 'Montage, figure 15: LIFO, tasks at a time',
      paper: 'mProjectPP and mDiff alternate; trailing tasks from about 60 s on',
      ours: `${percent(lifoMixed)} of mDiff before the last mProjectPP; fewer than 87 from ${seconds(latest.falls)} on`,
      better: '',
      turning: `cores idle for ${seconds(latest.idle)} of the first part, with LIFO+HRF for ${seconds(both.idle)}`,
      met: lifoMixed >= HALF && latest.idle > both.idle,
      off: parts(60, latest.falls),
    },
    {
      experiment: 'Montage, figure 16: LIFO+HRF, tasks at a time',
      paper: 'alternate as with LIFO; no trailing tasks',
      ours: `${percent(hybridMixed)} of mDiff before the last mProjectPP; fewer than 87 for the last ${seconds(both.end - both.falls)} of the first part, with LIFO for ${seconds(latest.end - latest.falls)}`,
      better: '',
      turning: '',
      met: hybridMixed >= HALF && both.end - both.falls < (latest.end - latest.falls) / 2,
    },
    {
      experiment: 'Montage, figure 17: Rank+HRF, tasks at a time',
      paper: 'as LIFO+HRF; mDiff nearly always on less than half of the cores',
      ours: `${seconds(rankEnd)}, LIFO+HRF ${seconds(hybridEnd)}; mDiff on more for ${percent(over48)} of the first part`,
      better: '',
      turning: '',
      met: Math.abs(rankEnd / hybridEnd - 1) < 0.05 && over48 <= 1 - MOST,
      off: `between the two ${parts(hybridEnd, rankEnd)}`,
    },
    {
      experiment: 'Montage, figures 18 and 19: mDiff at a time, close to input files',
      paper: 'LIFO+HRF exceeds 48; Rank+HRF less than 48 from 20 to 60 s',
      ours: `most ${peaks[0]}; ${peaks[1]}`,
      better: '',
      turning: '',
      met: peaks[0] > 48 && peaks[1] < 48,
    },
    {
      experiment: 'Montage, figures 18 and 19: Rank+HRF against LIFO+HRF, close to input files',
      paper: '4.4%; 134.4 and 128.7 s',
      ours: `${(equalized * 100).toFixed(1)}%; ${nearTimes.map(one => one.toFixed(0)).join(' and ')} s`,
      better: '',
      turning: '',
      met: equalized >= 0.044,
      off: `${points(0.044, equalized)}; times ${parts(134.4, nearTimes[0])}, ${parts(128.7, nearTimes[1])}`,
    },
  ]
}
