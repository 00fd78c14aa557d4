/** What the server and the page tell each other. Times are milliseconds since the start of the run. */

import type { ControlAction, MovePhase, Outcome } from '../../core/events.ts'
import type { TaskState } from './state/tasks.ts'

export type { TaskState }

/** A value over time: means of buckets that are `width` milliseconds wide. */
export interface Points {
  width: number
  values: number[]
}

export interface RunSection {
  name: string
  program: string
  args: string[]
  again: string | null
  cwd: string
  version: string
  policy: string
  wallTime: string
  simulated: boolean
  state: Outcome | 'running' | 'killed'
  message: string | null
  elapsed: number
  cpus: number
  nodes: number
  devices: number
  /** False while an older part of the journal is still being read. */
  isCaughtUp: boolean
  /** Milliseconds that the page is behind a run that goes on, because reading faster would cost the run too much. */
  behind: number
  hasStreams: boolean
  isPaused: boolean
  counts: Counts
}

export type Counts = Record<
  'submitted' | 'waiting' | 'ready' | 'running' | 'blocked' | 'done' | 'failed' | 'ignored' | 'cancelled',
  number
>

export interface KindRow extends Counts {
  kind: number
  name: string
  form: string
  retried: number
  busyMs: number
  mean: number
  median: number
  p95: number
  longest: number
  /** Milliseconds until all tasks of it that are known will have ended; null without a basis. */
  eta: number | null
  peakBytes: number
  readBytes: number
  writtenBytes: number
  histogram: { from: number; counts: number[] }
}

export interface OverviewSection {
  counts: Counts
  retried: number
  eta: number | null
  parallelism: number
  cpusBusy: number
  cpusIdleShare: number | null
  busy: Points
  kinds: KindRow[]
  kindsLeftOut: number
  waits: { inputs: number; cpu: number; device: number; room: number; called: number }
  reasons: { task: number; name: string; reason: string }[]
  slowest: { task: number; name: string; ms: number }[]
  findings: string[]
  warnings: string[]
  notes: { at: number; level: string; text: string }[]
}

export interface FailureRow {
  task: number
  name: string
  at: number
  attempt: number
  cause: string
  stack: string[]
  command: string | null
  cwd: string | null
  tail: string[]
  tailCut: { first: number; lines: number | null } | null
  log: string | null
}

export interface FailuresSection {
  failures: FailureRow[]
  count: number
}

export interface TimelineSection {
  end: number
  layout: number
  /** Changes whenever tiles that were not complete have changed. */
  revision: number
  rows: { node: number; lane: number; isIo: boolean }[]
  nodes: string[]
  kinds: { kind: number; name: string }[]
  /** What runs now: row, start, task, kind. */
  open: [number, number, number, number][]
}

export interface GraphNode {
  id: string
  name: string
  kind: number
  task: number | null
  counts: Counts | null
  state: TaskState | null
  busyMs: number
  isCritical: boolean
}

export interface GraphEdge {
  from: string
  to: string
  count: number
  isCritical: boolean
}

export interface CriticalStep {
  task: number
  name: string
  /** Why it began when it did: from when its last input was there. */
  waitMs: number
  runMs: number
}

export interface GraphSection {
  nodes: GraphNode[]
  edges: GraphEdge[]
  leftOut: number
  critical: { ms: number; length: number; steps: CriticalStep[] }
}

export interface DeviceRow {
  name: string
  path: string
  node: string | null
  limitRead: number | null
  limitWrite: number | null
  capacity: number | null
  used: number
  running: number
  waiting: number
  failure: string | null
  peakRead: number
  peakWrite: number
  written: Points
  read: Points
  givenWrite: Points
  givenRead: Points
  usedOver: Points
  queue: Points
  content: { kind: string; files: number; bytes: number }[]
}

export interface MoveRow {
  at: number
  why: string
  phase: MovePhase
  /** Why it was not done. */
  reason: string | null
  file: string
  from: string
  to: string
  bytes: number
}

export interface TunerRow {
  kind: string
  device: string
  trials: { concurrency: number; bandwidth: number; mean: number; at: number }[]
  verdict: {
    concurrency: number
    bandwidth: number
    learned: number
    /** Tasks that it was chosen for; null where it was not chosen for a number of them. */
    waiting: number | null
    reason: string
  } | null
}

export interface StorageSection {
  devices: DeviceRow[]
  moving: MoveRow[]
  recent: MoveRow[]
  moved: {
    flush: { files: number; bytes: number }
    prefetch: { files: number; bytes: number }
    failed: number
    /** Not needed any more before they were done. */
    dropped: number
  }
  tuners: TunerRow[]
  io: { policy: string; flush: string; prefetch: boolean } | null
}

export interface StreamRow {
  name: string
  state: string
  producers: string[]
  consumers: { name: string; waits: boolean }[]
  /** Bytes or values that are there. */
  frontier: number
  unit: 'bytes' | 'values'
  /** Per second, of late. */
  rate: number
  over: Points
}

export interface StreamsSection {
  streams: StreamRow[]
  leftOut: number
  waits: string[]
}

export interface DataRow {
  version: number
  name: string
  bytes: number
  maker: { task: number; name: string } | null
  holders: { task: number; name: string }[]
  holderCount: number
  /** A value in memory, and no file. */
  isValue: boolean
  /** The device of a file, or the node that alone has a value. */
  place: string | null
}

export interface DataSection {
  largest: DataRow[]
  files: { count: number; bytes: number }
  /** Large values that are in memory. */
  values: { count: number; bytes: number; most: number }
  madeBytes: number
  /** What temporary files take, where they have a bound. */
  intermediate: { bytes: number; limit: number; over: Points } | null
}

export interface NodeRow {
  name: string
  /** Null while it takes part. */
  hasLeft: string | null
  cpus: number
  memory: number
  claimed: number
  running: number
  done: number
  cpusBusy: number
  busyShare: number
  busy: Points
  /** The last measurement; null where no page was open. */
  measured: { rss: number; available: number; memory: number; load: number } | null
}

export interface NodesSection {
  nodes: NodeRow[]
  transfers: { from: string; to: string; count: number; bytes: number }[]
}

/** All that the server sends by itself. A page gets the sections that it asks for, and those again that have changed. */
export interface Sections {
  run: RunSection
  overview: OverviewSection
  failures: FailuresSection
  timeline: TimelineSection
  graph: GraphSection
  storage: StorageSection
  streams: StreamsSection
  data: DataSection
  nodes: NodesSection
}

export type SectionName = keyof Sections

export interface VersionFacts {
  version: number
  name: string
  bytes: number
  maker: { task: number; name: string } | null
  madeAt: number | null
  readers: { task: number; name: string }[]
}

export interface TaskFacts {
  task: number
  name: string
  /** What tells it from others of its kind. */
  label: string
  state: TaskState
  kind: number
  form: string
  module: string
  group: string | null
  priority: number
  parent: { task: number; name: string } | null
  submittedAt: number | null
  readyAt: number | null
  startedAt: number | null
  endedAt: number | null
  attempt: number
  place: string | null
  device: string | null
  demand: string | null
  /** What it was called with; null where the run did not tell. */
  arguments: string | null
  story: string[]
  waits: string | null
  inputs: VersionFacts[]
  outputs: VersionFacts[]
  logs: { attempt: number; text: string; isCut: boolean }[]
}

export interface FoundTask {
  task: number
  name: string
  state: TaskState
}

export interface TileAnswer {
  level: number
  index: number
  group: number
  layout: number
  isComplete: boolean
  rows: number[][]
}

/** What a page asks of the run. */
export interface ControlRequest {
  action: ControlAction
  task?: number
  priority?: number
  /** All tasks of its kind that have not begun, and not it alone. */
  isForKind?: boolean
}

export interface ControlOrder extends ControlRequest {
  /** Who did it. */
  by: string
}

/** What was done, in a sentence, or why it was not. */
export type ControlAnswer = { done: string } | { problem: string }

/** Passes an order on to the run. */
export type Controls = (order: ControlOrder) => Promise<ControlAnswer>
