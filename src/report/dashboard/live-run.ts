import { open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { JournalTail } from '../journal/tail.ts'
import { isAlive } from '../journal/runs.ts'
import { cleanLines } from '../text.ts'
import type { Allowance } from './allowance.ts'
import { RunModel } from './state/run-model.ts'
import type { RunSection, SectionName, Sections, TaskFacts } from './protocol.ts'
import { dataSection, nodesSection, streamsSection } from './sections/data.ts'
import { graphSection } from './sections/graph.ts'
import { countsOf, failuresSection, overviewSection } from './sections/overview.ts'
import { storageSection } from './sections/storage.ts'
import { taskFacts } from './sections/task-facts.ts'
import { TileCache, timelineSection } from './sections/timeline.ts'

/** Threads report in batches: events may be this much older than those before them, in milliseconds. */
const BATCH_MS = 2000
/** Of a log, its end is shown. */
const LOG_BYTES = 64 * 1024
/** Reading a long journal pauses after this many milliseconds, so that pages are answered in between. */
const SLICE_MS = 50

/** A run as its journal tells it, up to now. */
export class LiveRun {
  readonly model = new RunModel()
  readonly tiles = new TileCache(this.model)
  readonly journal: string
  /** Changes when events were read. */
  revision = 0
  isCaughtUp = false
  /** What reading and showing a run that goes on may cost; null: whatever it takes. */
  allowance: Allowance | null
  readonly #tail: JournalTail
  #reading: Promise<void> | null = null
  #isGone = false
  #isHeldBack = false

  constructor(journal: string, allowance: Allowance | null = null) {
    this.journal = journal
    this.allowance = allowance
    this.#tail = new JournalTail(journal)
  }

  /** Nothing more will come. */
  get isOver(): boolean {
    return this.model.statistics.outcome !== null || (this.#isGone && this.isCaughtUp)
  }

  /** Milliseconds since the start of the run. It goes on also while nothing happens. */
  get now(): number {
    const { run, statistics } = this.model
    const { elapsed } = statistics
    if (run === null || this.isOver || run.simulated || !this.isCaughtUp) return elapsed
    return Math.max(elapsed, this.age)
  }

  /** Milliseconds since the run began, by the clock. */
  get age(): number {
    const { run } = this.model
    return run === null ? 0 : Date.now() - Date.parse(run.wallTime)
  }

  /** It stopped reading because more would cost the run too much. */
  get isHeldBack(): boolean {
    return this.#isHeldBack
  }

  /** Reads what was written since the last call. Calls at one time share one pass. */
  read(): Promise<void> {
    return (this.#reading ??= this.#readAll().finally(() => (this.#reading = null)))
  }

  close(): Promise<void> {
    return this.#tail.close()
  }

  async #readAll(): Promise<void> {
    const pid = this.model.run?.pid
    // First the process, then the journal: what it wrote before its end is then read.
    const isGone = pid !== undefined && !isAlive(pid)
    let begun = performance.now()
    this.#isHeldBack = false
    for (;;) {
      if (!isGone && this.allowance !== null && this.allowance.left(this.age) <= 0) {
        this.#isHeldBack = this.model.run !== null && (await this.#tail.hasMore())
        this.isCaughtUp &&= !this.#isHeldBack
        return
      }
      const events = await this.#tail.next()
      if (events === null) break
      this.revision++
      for (const event of events) this.model.observe(event)
      if (performance.now() - begun < SLICE_MS) continue
      await new Promise(resolve => setImmediate(resolve))
      begun = performance.now()
    }
    this.#isGone = isGone
    this.isCaughtUp = this.model.run !== null
  }

  tile(level: number, index: number, group: number): ReturnType<TileCache['tile']> {
    return this.tiles.tile(level, index, group, this.#stableUntil(), this.revision)
  }

  section<N extends SectionName>(name: N): Sections[N] {
    return this.#sections[name]() as Sections[N]
  }

  async task(id: number): Promise<TaskFacts | null> {
    const facts = taskFacts(this.model, id)
    return facts && { ...facts, logs: await readLogs(this.journal, id) }
  }

  readonly #sections: { [N in SectionName]: () => Sections[N] } = {
    run: () => this.#run(),
    overview: () => overviewSection(this.model, this.now),
    failures: () => failuresSection(this.model),
    timeline: () => timelineSection(this.model, this.now, this.revision),
    graph: () => graphSection(this.model),
    storage: () => storageSection(this.model, this.now),
    streams: () => streamsSection(this.model, this.now),
    data: () => dataSection(this.model, this.now),
    nodes: () => nodesSection(this.model, this.now),
  }

  #run(): RunSection {
    const { run, statistics, nodes, storage, streams } = this.model
    return {
      name: run?.run ?? '',
      program: run?.program ?? '',
      args: run?.args ?? [],
      again: run?.again ?? null,
      cwd: run?.cwd ?? '',
      version: run?.version ?? '',
      policy: run?.policy ?? '',
      wallTime: run?.wallTime ?? '',
      simulated: run?.simulated ?? false,
      state: statistics.outcome ?? (this.#isGone ? 'killed' : 'running'),
      message: statistics.endMessage,
      elapsed: this.now,
      cpus: statistics.cpus,
      nodes: nodes.length,
      devices: storage.devices.length,
      isCaughtUp: this.isCaughtUp,
      behind: this.isHeldBack ? Math.max(0, this.age - this.now) : 0,
      hasStreams: !streams.isEmpty,
      isPaused: this.model.isPaused && !this.isOver,
      counts: countsOf(statistics.total),
    }
  }

  /** No slice will be added before this time. */
  #stableUntil(): number {
    if (this.isOver) return Infinity
    const oldest = this.model.statistics.slowest(1)[0]?.startedAt ?? Infinity
    return Math.min(oldest, this.model.statistics.elapsed - BATCH_MS)
  }
}

/** What the attempts of a task printed: their last lines. */
export async function readLogs(journal: string, task: number): Promise<TaskFacts['logs']> {
  const folder = join(dirname(journal), 'logs')
  const names = await readdir(folder).catch(() => [])
  const attempts = names
    .map(name => /^(\d+)\.(\d+)\.log$/.exec(name))
    .filter(match => match !== null && Number(match[1]) === task)
    .map(match => Number(match?.[2]))
    .sort((a, b) => a - b)
  const logs: TaskFacts['logs'] = []
  for (const attempt of attempts.slice(-5)) {
    const file = await open(join(folder, `${task}.${attempt}.log`), 'r').catch(() => null)
    if (!file) continue
    try {
      const { size } = await file.stat()
      const buffer = Buffer.alloc(Math.min(size, LOG_BYTES))
      const { bytesRead } = await file.read(buffer, 0, buffer.length, Math.max(0, size - LOG_BYTES))
      const text = cleanLines(buffer.toString('utf8', 0, bytesRead)).join('\n')
      logs.push({ attempt, text, isCut: size > LOG_BYTES })
    } finally {
      await file.close()
    }
  }
  return logs
}
