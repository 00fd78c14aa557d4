import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { writeWhole } from '../export/write-whole.ts'
import { LiveRun } from './live-run.ts'
import { readPageFile } from './page-files.ts'
import type { TaskFacts } from './protocol.ts'
import { emptyPacked, packLane, type CompareData, type PackedLane, type ReportData } from './report-data.ts'
import type { Lane } from './state/lanes.ts'
import { BUCKETS, bucketMs, ITEM, levelFor, PARTS, tileMs, tileRow } from './state/tiles.ts'

/** With more slices than this, neighbours are merged: the file stays one that a browser opens at once. */
const MOST_SLICES = 150_000
/** Reports of runs up to this many tasks have all tasks in full; larger ones those that failed or are on the critical path. */
const MOST_TASKS = 1000
/** Buckets over the whole run, where slices are merged. */
const MERGED_BUCKETS = 8192

/** Writes one file with all that the page shows. It needs no server and nothing from elsewhere. */
export async function writeReport(journal: string, path: string): Promise<void> {
  const run = new LiveRun(journal)
  try {
    await run.read()
    await writeWhole(path, [pageWith(await reportData(run))])
  } finally {
    await run.close()
  }
}

export const writeComparison = (data: CompareData, path: string): Promise<void> =>
  writeWhole(path, [pageWith(data)])

export async function reportData(run: LiveRun): Promise<ReportData> {
  const { model } = run
  const sections = {
    run: run.section('run'),
    overview: run.section('overview'),
    failures: run.section('failures'),
    timeline: run.section('timeline'),
    graph: run.section('graph'),
    storage: run.section('storage'),
    streams: run.section('streams'),
    data: run.section('data'),
    nodes: run.section('nodes'),
  }
  const slices = model.lanes.rows.reduce((sum, lane) => sum + lane.size, 0)
  const isMerged = slices > MOST_SLICES
  const ids = new Set([
    ...sections.failures.failures.map(({ task }) => task),
    ...sections.graph.critical.steps.map(({ task }) => task),
  ])
  if (model.tasks.count <= MOST_TASKS) for (let id = 0; id <= model.tasks.last; id++) ids.add(id)
  const tasks: TaskFacts[] = []
  for (const id of ids) {
    const facts = await run.task(id)
    if (facts) tasks.push(facts)
  }
  return {
    sections,
    lanes: model.lanes.rows.map(lane =>
      isMerged ? mergedLane(lane, model.statistics.elapsed) : packLane(lane),
    ),
    merged: isMerged ? slices : 0,
    tasks,
  }
}

/** The lane as a coarse tile has it; a merged slice has minus the number of its tasks. */
function mergedLane(lane: Lane, end: number): PackedLane {
  const level = levelFor(end / MERGED_BUCKETS) + 1
  const packed = emptyPacked(lane)
  const part = (bucketMs(level) / PARTS) * 1000
  let last = 0
  let task = 0
  for (let index = 0; index * tileMs(level) <= end; index++) {
    const row = tileRow(lane, level, index)
    for (let at = 0; at < row.length; at += ITEM) {
      const start = Math.round((index * BUCKETS * PARTS + (row[at] ?? 0)) * part)
      // A bucket that is partly filled is drawn as narrow as its tasks were.
      const length = Math.max(1, Math.round(((row[at + 1] ?? 0) * part * (row[at + 5] ?? 0)) / 255))
      packed.gaps.push(start - last)
      packed.lengths.push(length)
      last = start + length
      packed.tasks.push((row[at + 4] ?? 0) - task)
      task = row[at + 4] ?? 0
      packed.kinds.push(row[at + 2] ?? 0)
      packed.outcomes.push(row[at + 3] ?? 0)
    }
  }
  return packed
}

/** The page with its script, its style and the data inside. The policy names both by their digests. */
function pageWith(data: ReportData | CompareData): string {
  const script = readPageFile('app.js')
  const style = readPageFile('app.css')
  const digest = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  const policy = `default-src 'none'; script-src ${digest(script)}; style-src ${digest(style)}; img-src data:; base-uri 'none'; form-action 'none'`
  // Base64 has no character that could end the element.
  const packed = gzipSync(JSON.stringify(data), { level: 9 }).toString('base64')
  return readPageFile('index.html')
    .replace(
      '<meta charset="utf-8" />',
      () => `<meta charset="utf-8" />\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`,
    )
    .replace('<link rel="stylesheet" href="app.css" />', () => `<style>${style}</style>`)
    .replace(
      '<script src="app.js"></script>',
      () => `<script type="application/gzip" id="inside">${packed}</script>\n    <script>${script}</script>`,
    )
}
