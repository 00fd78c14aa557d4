import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { bootId, monotonic } from '../cluster/link/machine-clock.ts'
import { Cluster } from '../cluster/coordinator/cluster.ts'
import { isApart } from '../cluster/coordinator/find-apart.ts'
import { NodeFolder } from '../cluster/coordinator/node-folder.ts'
import type { NodeLink } from '../cluster/coordinator/node-link.ts'
import { hashOf } from '../cluster/files/parcel.ts'
import type { Parcel } from '../cluster/files/parcel.ts'
import { findNodes } from '../cluster/launch/find-nodes.ts'
import { ordersFolder, removeOrders } from '../cluster/launch/orders.ts'
import { Elastic } from '../cluster/elastic/elastic.ts'
import { SlurmJobs } from '../cluster/elastic/slurm-jobs.ts'
import { parseSlurm } from '../cluster/elastic/slurm-options.ts'
import type { SlurmWish } from '../cluster/elastic/slurm-options.ts'
import { LEASE } from '../cluster/lease/lease.ts'
import type { AgentEvents, NodePorts } from '../node/local-node.ts'
import { MillraceError } from '../core/errors.ts'
import type { NodeDescription } from '../core/schedule/machine.ts'
import { parseBytes, parseCount, parseDuration } from '../general/units.ts'
import { hasTasksOn } from '../model/definition.ts'
import { mayStream } from '../stream/run/toolchain.ts'
import { programParcel } from './program-parcel.ts'
import type { RunOptions } from './run-options.ts'
import type { Runtime } from './runtime.ts'
import { threadFacts } from './thread-facts.ts'
import { packageVersion } from './version.ts'

/** Agents get this long to end by themselves at the end of a run; milliseconds. */
const END_GRACE = 3000
const LEAST_SILENCE = 1000
/** Logs that do not come in this time stay away; milliseconds. */
const LOG_PATIENCE = 10_000

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

interface ClusterNode {
  readonly description: NodeDescription
  readonly ports: NodePorts
}

/** What the agents know about the run. */
interface Facts {
  readonly id: string
  readonly entry: string | null
  readonly logs: string | null
  readonly startedAt: number
}

/** Starts the agents; null where this machine is the only node. */
export function startCluster(options: RunOptions, run: string): ClusterRun | null {
  const { nodes, slurm, machine, launched = false } = options
  const wish = slurm === undefined ? null : parseSlurm(slurm, nodes)
  const specs = wish ? [] : findNodes({ isLaunched: launched, ...(nodes === undefined ? {} : { nodes }) })
  if (!specs) return null
  if (machine !== undefined) {
    throw new MillraceError(
      'MR_NODES',
      'a description of this machine and several nodes do not go together',
      {
        hint: 'Leave out --machine or --nodes: storage layers are for one machine so far.',
      },
    )
  }
  return new ClusterRun(
    new Cluster(specs, run, packageVersion(), silence(), wish !== null),
    run,
    wish,
    options,
  )
}

/** What differs where a run has several nodes. */
export class ClusterRun {
  readonly #cluster: Cluster
  readonly #run: string
  readonly #wish: SlurmWish | null
  readonly #options: RunOptions
  #elastic: Elastic | null = null
  /** Of agents that joined, the number of their node in the core. */
  readonly #indexOf = new Map<number, number>()
  #logs: string | null = null
  /** Made once, for all nodes that do not see it. */
  #program: Promise<{ parcel: Parcel; hash: string }> | null = null
  /** Resolves when all agents have called. */
  readonly ready: Promise<void>

  constructor(cluster: Cluster, run: string, wish: SlurmWish | null, options: RunOptions) {
    this.#cluster = cluster
    this.#run = run
    this.#wish = wish
    this.#options = options
    this.ready = cluster.start()
    this.ready.catch(() => undefined)
  }

  /** Nodes may join. */
  get mayGrow(): boolean {
    return this.#wish !== null
  }

  /** Waits for nodes on other machines. There is no run yet that would end the agents with this process. */
  async reach(): Promise<void> {
    if (!this.#cluster.isFar && !this.#wish) return
    const onExit = (): void => this.endNow()
    const onSignal = (signal: NodeJS.Signals): void => process.exit(signal === 'SIGTERM' ? 143 : 130)
    process.on('exit', onExit)
    for (const signal of SIGNALS) process.on(signal, onSignal)
    // Connections to agents keep no process alive.
    const alive = setInterval(() => undefined, 1000)
    try {
      await this.check()
      await this.ready
      const { links } = this.#cluster
      await Promise.all([...links.keys()].map(node => this.#look(node)))
    } catch (error) {
      this.endNow()
      throw error
    } finally {
      clearInterval(alive)
      process.off('exit', onExit)
      for (const signal of SIGNALS) process.off(signal, onSignal)
    }
  }

  /** What the nodes have, and how tasks get there. */
  nodes({ cpus, tags }: RunOptions): ClusterNode[] {
    const given = cpus === undefined ? null : parseCount(cpus)
    // Agents on this machine see all of it, unless they are to have folders of their own.
    if (ownFolder() !== null) for (const i of this.#cluster.links.keys()) this.#giveFolder(i)
    const descriptions = this.#cluster.describe(given, tags ?? [])
    return descriptions.map((description, i) => ({ description, ports: this.#portsOf(i) }))
  }

  /** Tells each agent what the run is. */
  begin(runtime: Runtime, facts: Facts): void {
    const isApart = this.#cluster.links.some(({ folder }) => folder !== null)
    runtime.directoriesOnCommit = this.#cluster.isFar || this.mayGrow || isApart
    for (const i of this.#cluster.links.keys()) this.#lookForStreams(i, runtime)
    this.#logs = facts.logs
    const cluster = this.#cluster
    runtime.lineage.begin(cluster.holders)
    for (const i of cluster.links.keys()) {
      this.#indexOf.set(i, i)
      this.#tell(i, facts)
    }
    const changed = (member: number, isPaused: boolean, until?: number): void => {
      const index = this.#indexOf.get(member)
      if (index === undefined) return
      const node = runtime.engine.nodes[index]
      runtime.engine.membership.changed(index, isPaused, until ?? node?.until ?? Infinity)
      runtime.schedule()
    }
    cluster.events = {
      joined: member => void this.#join(member, runtime, facts),
      failed: (name, reason) => runtime.note('warning', `node ${name} did not come: ${reason}`),
      suspected: (member, isSuspect) => changed(member, isSuspect),
    }
    runtime.cleanUpLater(cluster.folder)
    if (!this.#wish) return
    runtime.cleanUpLater(ordersFolder(this.#run))
    const elastic = new Elastic(this.#run, this.#wish, {
      enlist: spec => cluster.add(spec),
      ordersFor: member => cluster.ordersFor(member),
      agentEnded: (member, reason) => cluster.agentEnded(member, reason),
      view: () => ({ waiting: runtime.engine.readyCount, meanMs: runtime.engine.meanTaskMs }),
      nodes: () =>
        [...this.#indexOf].flatMap(([member, index]) => {
          const node = runtime.engine.nodes[index]
          if (!node || node.isLost) return []
          return [{ member, cpus: node.cpus, isIdle: runtime.nodes.all[index]?.isIdle === true }]
        }),
      changed: (member, isPaused, left) => {
        changed(member, isPaused, runtime.now() + left)
        if (isPaused) void runtime.lineage.leave(member)
      },
      dismiss: member => void runtime.lineage.leave(member).then(() => cluster.dismiss(member)),
      giveUp: reason => {
        runtime.note('warning', reason)
        runtime.engine.membership.close(runtime.now())
        runtime.schedule()
      },
      note: (level, text) => runtime.note(level, text),
    })
    this.#elastic = elastic
    void this.ready.then(() => elastic.start())
  }

  /** Says what Slurm has against the nodes that are asked for, before anything is run. */
  async check(): Promise<void> {
    if (this.#wish) await new SlurmJobs(this.#run, this.#wish.words).test(this.#wish.block)
  }

  async #join(member: number, runtime: Runtime, facts: Facts): Promise<void> {
    await this.#elastic?.joined(member)
    const link = this.#cluster.links[member] as NodeLink
    await this.#look(member)
    if (link.isGone) return
    this.#lookForStreams(member, runtime)
    this.#tell(member, facts)
    const { cpus, tags } = this.#options
    const description = this.#cluster.describeNode(
      member,
      cpus === undefined ? null : parseCount(cpus),
      tags ?? [],
    )
    const ports = this.#portsOf(member)
    const attach = (events: AgentEvents): void => {
      link.events = {
        ...events,
        gone: (reason, isLost) => {
          this.#elastic?.left(member)
          events.gone(reason, isLost)
        },
      }
    }
    this.#indexOf.set(member, runtime.nodes.join(description, { ...ports, attach }))
    this.#elastic?.told(member)
  }

  /** Lets the agents end, and ends those that do not. */
  async end(): Promise<void> {
    await this.#gatherLogs()
    this.#cluster.end()
    await this.#cluster.gone(END_GRACE)
    this.#elastic?.end()
    removeOrders(this.#run)
  }

  endNow(): void {
    this.#cluster.endNow()
    this.#elastic?.end()
    removeOrders(this.#run)
  }

  /** Where programs on a node cannot read files as they grow, those of the whole run read them when they are complete. */
  #lookForStreams(node: number, runtime: Runtime): void {
    const hello = this.#cluster.helloOf(node)
    // One on this machine may not have called yet.
    if ((hello ? hello.streams : mayStream()) || runtime.streamsOnCommit) return
    runtime.streamsOnCommit = true
    const { name } = this.#cluster.links[node] as NodeLink
    runtime.note('info', `node ${name} has no C compiler: files of stream(…) are read when they are complete`)
  }

  /** Finds out whether a node on another machine sees our folders. */
  async #look(node: number): Promise<void> {
    const link = this.#cluster.links[node] as NodeLink
    const isLocal = this.#cluster.isLocal(node)
    if (link.folder || (isLocal && ownFolder() === null)) return
    if (ownFolder() !== null || (await isApart(link))) this.#giveFolder(node)
  }

  #giveFolder(node: number): void {
    const link = this.#cluster.links[node] as NodeLink
    const base = ownFolder() ?? this.#cluster.helloOf(node)?.folder ?? '/tmp'
    link.folder ??= new NodeFolder(link, join(base, `millrace-${this.#run}.${node}`))
  }

  async #sendProgram(link: NodeLink, folder: NodeFolder, entry: string | null): Promise<void> {
    try {
      const { parcel, hash } = await (this.#program ??= this.#pack(entry))
      await folder.sendProgram(parcel, hash)
    } catch (error) {
      if (!link.isGone) link.lost(`the program could not be sent: ${(error as Error).message}`)
    }
  }

  async #pack(entry: string | null): Promise<{ parcel: Parcel; hash: string }> {
    // The order to start goes first.
    await Promise.resolve()
    const { modules } = threadFacts(entry)
    const parcel = programParcel(entry ? [...modules, entry] : modules)
    return { parcel, hash: await hashOf(parcel) }
  }

  /** What tasks printed there is kept here. */
  async #gatherLogs(): Promise<void> {
    const logs = this.#logs
    if (logs === null) return
    const folders = this.#cluster.links.flatMap(({ folder, isGone }) => (folder && !isGone ? [folder] : []))
    const gathered = Promise.allSettled(folders.map(folder => folder.gather(logs)))
    if (folders.length > 0) await Promise.race([gathered, pause(LOG_PATIENCE)])
  }

  #portsOf(node: number): NodePorts {
    const link = this.#cluster.links[node] as NodeLink
    return {
      openThread: (lane, isIo, events) => link.openThread(lane, isIo, events),
      processes: link.processes,
      isLocal: this.#cluster.isLocal(node),
      ...(this.#cluster.isLocal(node)
        ? {}
        : { ranks: { node: link.name, openSite: () => link.ranks.open() } }),
      folder: link.folder,
      streams: this.#cluster.isLocal(node) && !link.folder ? null : link.streams,
      attach: events => {
        link.events = events
      },
      measure: isWanted => link.measure(isWanted),
    }
  }

  #tell(node: number, { id, entry, logs, startedAt }: Facts): void {
    const link = this.#cluster.links[node] as NodeLink
    if (link.folder) void this.#sendProgram(link, link.folder, entry)
    link.start({
      mark: `${id}.${node}`,
      cwd: process.cwd(),
      root: link.folder?.root ?? null,
      isSent: link.folder !== null,
      memory: memoryOf(this.#cluster.describeNode(node, null, []).memory),
      argv: process.argv,
      execArgv: process.execArgv,
      environment: this.#cluster.environmentFor(node),
      ...threadFacts(entry),
      logs,
      startedAt,
      now: monotonic(),
      boot: bootId(),
      commands: hasTasksOn('programs'),
    })
  }
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => {
    setTimeout(resolve, milliseconds).unref()
  })

/** Below it, each agent is to have a folder of its own, also where it sees ours; null where that is not wanted. */
function ownFolder(): string | null {
  const path = process.env['MILLRACE_NODE_FOLDER']
  if (!path) return null
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** How much of the values on a node may be in its memory, of so much in all; bytes. */
function memoryOf(all: number): number {
  const text = process.env['MILLRACE_NODE_MEMORY']
  if (!text) return all > 0 ? all / 2 : Infinity
  const bytes = parseBytes(text)
  if (bytes !== null && bytes > 0) return bytes
  throw new MillraceError('MR_ENV', `MILLRACE_NODE_MEMORY is '${text}', which is not a size`, {
    hint: 'Write how much memory values may take on a node: 500MB, 8GB.',
  })
}

/** How long a node may be silent before it is given up; milliseconds. */
function silence(): number {
  const text = process.env['MILLRACE_NODE_SILENCE']
  if (!text) return LEASE.dead
  const milliseconds = parseDuration(text)
  if (milliseconds !== null && milliseconds >= LEAST_SILENCE) return milliseconds
  throw new MillraceError('MR_ENV', `MILLRACE_NODE_SILENCE is '${text}', which is not a duration from 1s`, {
    hint: 'Write how long a node may be silent before it is given up: 15s, 1m.',
  })
}
