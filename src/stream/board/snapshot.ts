/** What `millrace-board ps` says, as preload/plan-format.md defines it. */
export interface BoardLine {
  type: 'board'
  workflow: string
  dir: string
  /** Where files go when memory is full. */
  layer: string | null
  live: boolean
}

export interface StepLine {
  type: 'step'
  name: string
  running: number
  endedOk: number
  endedFailed: number
  ended: boolean
  failed: boolean
  /** Why it failed. */
  reason?: string
}

export interface FileLine {
  type: 'file'
  path: string
  kind: 'file' | 'dir'
  state: 'absent' | 'growing' | 'committed' | 'failed'
  written: number | null
  size: number | null
  writers: number | null
  waiters: number | null
  producers: string[]
  reason?: string
}

export interface ProcessLine {
  type: 'process'
  pid: number
  step: string | null
  state: string
  /** All its threads wait for files or for its children. */
  blocked?: boolean
}

export interface WaitLine {
  type: 'wait'
  pid: number
  step: string | null
  path: string
  for: 'data' | 'commit' | 'exists' | 'list'
  at: number | null
  seconds: number | null
  on: string[] | null
  sentence: string
}

export interface EventLine {
  type: 'event'
  seq: number
  time: number
  kind: string
  path: string | null
  step: string | null
  text: string
}

/** Bytes that went from one node to the next, of files of this node. */
export interface LinkLine {
  from: string
  to: string
  byCoordinator: boolean
  bytes: number
  /** Bytes per second of late. */
  rate: number
}

/** Where the workflow is on several nodes. */
export interface NodesLine {
  type: 'nodes'
  /** Of this node. */
  name: string
  /** Nodes of each step. */
  places: Record<string, string[]>
  links: LinkLine[]
}

export interface Snapshot {
  board: BoardLine | undefined
  steps: StepLine[]
  files: FileLine[]
  processes: ProcessLine[]
  waits: WaitLine[]
  events: EventLine[]
  nodes?: NodesLine | undefined
}

/** Reads the lines; types that are not known here are passed over, as the format asks. */
export function parseSnapshot(text: string): Snapshot {
  const snapshot: Snapshot = { board: undefined, steps: [], files: [], processes: [], waits: [], events: [] }
  for (const line of text.split('\n')) {
    if (line === '') continue
    const record = JSON.parse(line) as { type: string }
    switch (record.type) {
      case 'board':
        snapshot.board = record as BoardLine
        break
      case 'step':
        snapshot.steps.push(record as StepLine)
        break
      case 'file':
        snapshot.files.push(record as FileLine)
        break
      case 'process':
        snapshot.processes.push(record as ProcessLine)
        break
      case 'wait':
        snapshot.waits.push(record as WaitLine)
        break
      case 'nodes':
        snapshot.nodes = record as NodesLine
        break
      case 'event':
        snapshot.events.push(record as EventLine)
        break
    }
  }
  return snapshot
}
