/** What an agent has to know of the run before its first task. */
export interface AgentStart {
  /** Marks what the tasks of this agent start; unique among all runs and agents. */
  readonly mark: string
  readonly cwd: string
  /** Where the agent has its own files, because it does not see those of the coordinator; null where it does. */
  readonly root: string | null
  /** So much of the values that it keeps may be in memory; the rest goes to its disk. Bytes. */
  readonly memory: number
  /** The program as it was started: modules may look at it while they are loaded. */
  readonly argv: readonly string[]
  readonly execArgv: readonly string[]
  /** Variables that differ from those that the agent was started with are set; null where it has ours already. */
  readonly environment: Readonly<Record<string, string>> | null
  /** The program is sent to the agent, and what follows waits for it. */
  readonly isSent: boolean
  readonly typescript: boolean
  readonly modules: readonly string[]
  readonly entry: string | null
  readonly logs: string | null
  /** When the run began, on the clock of the coordinator's machine, and what that clock shows now; milliseconds. */
  readonly startedAt: number
  readonly now: number
  /** The machine's own name for its time since the start: the same one means the same clock. */
  readonly boot: string
  /** Start a process for programs ahead of the first. */
  readonly commands: boolean
}

/** What an agent says of itself when it calls. */
export interface AgentHello {
  readonly protocol: number
  /** What the connection is for; `package`: a machine without Millrace calls for it. */
  readonly channel: 'control' | 'data' | 'lease' | 'package'
  readonly token: string
  /** Which of the nodes that were launched it is. */
  readonly node: number
  readonly version: string
  readonly nodeVersion: string
  readonly host: string
  /** What its queue calls it. */
  readonly name?: string
  readonly pid: number
  readonly cpus: number
  readonly memory: number
  readonly platform: string
  /** Where other agents can call it for data; none where they cannot. */
  readonly peers: readonly string[]
  /** Where it can have a folder of its own. */
  readonly folder: string
  /** It has the library that lets programs read files as they grow, or can build it. */
  readonly streams: boolean
}

/** What an agent is asked before a run. */
export interface AgentProbe {
  readonly cwd: string
  /** A file that the coordinator has just made there, and what it wrote. */
  readonly file: string
  readonly text: string
}

export interface AgentView {
  readonly hasFolder: boolean
  /** Whether it sees the file with that content. */
  readonly seesFile: boolean
  readonly canWrite: boolean
  /** Milliseconds since 1970. */
  readonly clock: number
}
