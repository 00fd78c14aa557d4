import type { SectionName, Sections, TaskFacts, TileAnswer } from '../src/report/dashboard/protocol.ts'
import { unpackLane, type CompareData, type ReportData } from '../src/report/dashboard/report-data.ts'
import type { Lane } from '../src/report/dashboard/state/lanes.ts'
import { ROWS_PER_TILE, sliceAt, tileRow } from '../src/report/dashboard/state/tiles.ts'
import type { Connection, Source } from './source.ts'

/** What the file has inside itself; null on the live page. */
export function insideData(): Promise<ReportData | CompareData> | null {
  const text = document.getElementById('inside')?.textContent
  return text ? unpack(text) : null
}

async function unpack(text: string): Promise<ReportData | CompareData> {
  const bytes = Uint8Array.from(atob(text), char => char.charCodeAt(0))
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return JSON.parse(await new Response(stream).text()) as ReportData | CompareData
}

/** Answers all from what is inside the file. */
export class ReportSource implements Source {
  readonly isLive = false
  readonly data: ReportData
  readonly #lanes: Lane[]
  readonly #tasks: Map<number, TaskFacts>

  constructor(data: ReportData) {
    this.data = data
    this.#lanes = data.lanes.map(unpackLane)
    this.#tasks = new Map(data.tasks.map(facts => [facts.task, facts]))
  }

  subscribe(
    sections: readonly SectionName[],
    onSection: <N extends SectionName>(name: N, section: Sections[N]) => void,
    onConnection: (connection: Connection) => void,
  ): () => void {
    for (const name of sections) onSection(name, this.data.sections[name])
    onConnection('open')
    return () => {}
  }

  async tile(level: number, index: number, group: number): Promise<TileAnswer> {
    const rows = this.#lanes.slice(group * ROWS_PER_TILE, (group + 1) * ROWS_PER_TILE)
    const { layout } = this.data.sections.timeline
    return {
      level,
      index,
      group,
      layout,
      isComplete: true,
      rows: rows.map(lane => tileRow(lane, level, index)),
    }
  }

  async taskAt(row: number, time: number, reach: number): Promise<number | null> {
    const lane = this.#lanes[row]
    const at = lane ? sliceAt(lane, time, reach) : null
    const task = at === null ? null : (lane?.tasks.get(at) ?? null)
    return task !== null && task >= 0 ? task : null
  }

  async task(id: number): Promise<TaskFacts | null> {
    return this.#tasks.get(id) ?? null
  }

  near(): Promise<never> {
    return Promise.reject(new Error('a report has the graph of kinds only'))
  }

  async find(): Promise<[]> {
    return []
  }

  async mayControl(): Promise<boolean> {
    return false
  }

  control(): Promise<never> {
    return Promise.reject(new Error('a report is about a run that has ended'))
  }
}
