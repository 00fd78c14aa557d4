import { mkdtempSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { availableParallelism, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { NodeDescription } from '../../core/schedule/machine.ts'
import type { LeaseNews } from '../lease/answer-leases.ts'
import { startAnswering } from '../lease/lease-worker.ts'
import type { LeaseAnswers } from '../lease/lease-worker.ts'
import { leaseFor } from '../lease/lease.ts'
import type { LeaseTimes } from '../lease/lease.ts'
import { PROTOCOL } from '../link/frame-types.ts'
import { newSecret } from '../link/secret.ts'
import type { AgentHello } from '../link/start.ts'
import type { AgentOrders } from '../launch/agent-command.ts'
import { environmentToSend } from '../launch/environment.ts'
import { launch } from '../launch/launch.ts'
import type { Launched } from '../launch/launch.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { sendPackage } from '../launch/send-package.ts'
import { Holders } from './holders.ts'
import { Listener } from './listener.ts'
import { NodeLink } from './node-link.ts'

/** Where agents call, by a socket on this machine or over the network. */
interface Addresses {
  readonly here: readonly string[]
  readonly far: readonly string[]
  readonly leasesHere: readonly string[]
  readonly leasesFar: readonly string[]
}

/** Agents have this long to call; milliseconds. */
const CALL_TIMEOUT = 60_000
/** An agent on this machine has no network to lose: while this process is stopped, it waits. Milliseconds. */
const FOR_EVER = 1e12

/** What is heard of nodes that come after the start. */
export interface ClusterEvents {
  /** The agent of a node that was added has called. */
  joined(node: number): void
  /** One that was added did not come. */
  failed(name: string, reason: string): void
  /** Nothing is heard of it for a while: nothing more is to be started there until it is. */
  suspected(node: number, isSuspect: boolean): void
}

interface Member {
  readonly spec: NodeSpec
  readonly link: NodeLink
  launched: Launched | null
  hello: AgentHello | null
  /** Its second and third connections are there, too. */
  hasData: boolean
  hasLease: boolean
  /** It was there from the beginning. */
  readonly isFirst: boolean
}

/** The agents of a run: started, watched, and ended together. More may join. */
export class Cluster {
  readonly #members: Member[] = []
  readonly #run: string
  readonly #version: string
  readonly #times: LeaseTimes
  readonly #secret = newSecret()
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-'))
  /** Which nodes have which values. */
  readonly holders = new Holders()
  readonly #listener: Listener
  readonly #staysOpen: boolean
  events: ClusterEvents | null = null
  #answers: LeaseAnswers | null = null
  #addresses: Addresses | null = null
  #waiting: { resolve: () => void; reject: (error: Error) => void } | null = null
  #callTimer: NodeJS.Timeout | undefined
  #isEnding = false

  /** `staysOpen`: nodes may be added at any time. */
  constructor(nodes: readonly NodeSpec[], run: string, version: string, silence: number, staysOpen = false) {
    this.#run = run
    this.#version = version
    this.#times = leaseFor(silence)
    this.#staysOpen = staysOpen
    const { token } = this.#secret
    this.#listener = new Listener((hello, socket, rest) => this.#called(hello, socket, rest), {
      token,
      folder: this.#folder,
    })
    for (const spec of nodes) this.#enlist(spec, true)
  }

  /** Some nodes are on other machines, and say what they have when they call. */
  get isFar(): boolean {
    return this.#members.some(({ spec }) => spec.by !== 'local')
  }

  /** The folder of the sockets, which the watchdog removes should this process be killed. */
  get folder(): string {
    return this.#folder
  }

  /** Agents that are started by a login of their own do not have the environment of this process. */
  environmentFor(node: number): Record<string, string> | null {
    const by = this.#members[node]?.spec.by
    return by === 'ssh' || by === 'command' ? environmentToSend(process.env) : null
  }

  get links(): readonly NodeLink[] {
    return this.#members.map(({ link }) => link)
  }

  /** Whether its agent is on this machine. */
  isLocal(node: number): boolean {
    return this.#members[node]?.spec.by === 'local'
  }

  /** What its agent said of itself. */
  helloOf(node: number): AgentHello | null {
    return this.#members[node]?.hello ?? null
  }

  /** What each node has. For nodes of this machine alone that is known before they have called. */
  describe(cpus: number | null, tags: readonly string[]): NodeDescription[] {
    if (this.#members.some(({ spec, hello }) => spec.by !== 'local' && !hello)) {
      this.endNow()
      throw new MillraceError('MR_NODES', 'a task was called before the nodes had said what they have', {
        hint: 'Call tasks in main(async () => { … }): it begins when all nodes are there. Only local:N does without.',
      })
    }
    return this.#members.map((_, node) => this.describeNode(node, cpus, tags))
  }

  describeNode(node: number, cpus: number | null, tags: readonly string[]): NodeDescription {
    const { spec, hello, link } = this.#members[node] as Member
    const local = this.#members.filter(({ spec: { by } }) => by === 'local').length
    const isLocal = spec.by === 'local'
    const share = Math.max(1, Math.floor((cpus ?? availableParallelism()) / local))
    return {
      name: hello?.name ?? spec.name,
      cpus: spec.cpus ?? (isLocal ? share : (hello?.cpus ?? 1)),
      memory: isLocal ? Math.floor(totalmem() / local) : (hello?.memory ?? 0),
      tags: [...tags, ...(spec.tags ?? [])],
      ioExecutors: 16,
      // Ranks on this machine and on others are never of one task.
      sharesRanks: isLocal === this.#members.every(({ spec: { by } }) => by === 'local'),
      isApart: link.folder !== null,
    }
  }

  /** Starts the agents. Resolves when all have called; nodes of this machine need not be waited for. */
  async start(): Promise<void> {
    const all = new Promise<void>((resolve, reject) => (this.#waiting = { resolve, reject }))
    all.catch(() => undefined)
    // Nothing else keeps the process alive until all have called.
    this.#callTimer = setTimeout(() => {
      const silent = this.#members.filter(({ hello }) => !hello).map(({ spec }) => spec.name)
      this.#waiting?.reject(unreachable(silent.join(', '), `no call within ${CALL_TIMEOUT / 1000} s`))
    }, CALL_TIMEOUT)
    try {
      if (await this.#listen()) await all
    } finally {
      clearTimeout(this.#callTimer)
    }
  }

  async #listen(): Promise<boolean> {
    const isFar = this.#staysOpen || this.#members.some(({ spec: { by } }) => by !== 'local' && by !== 'ssh')
    const [here, far, leases] = await Promise.all([
      this.#listener.listenHere('agents'),
      isFar ? this.#listener.listenOnNetwork() : [],
      this.#answerLeases(isFar),
    ])
    if (this.#isEnding) {
      this.#close()
      return false
    }
    this.#addresses = { here: [here], far, leasesHere: [leases.here], leasesFar: leases.far }
    for (const node of this.#members.keys()) this.#launch(node)
    this.#look()
    return true
  }

  /** A node that is to take part from now on; `events.joined` says when it does. Returns its number. */
  add(spec: NodeSpec): number {
    const node = this.#enlist(spec, false)
    this.#launch(node)
    return node
  }

  /** What an agent has to know that another program starts. */
  ordersFor(node: number): AgentOrders {
    const { spec } = this.#members[node] as Member
    const { here, far, leasesHere, leasesFar } = this.#addresses as Addresses
    const usesSocket = spec.by === 'local' || spec.by === 'ssh'
    return {
      addresses: usesSocket ? here : far,
      leases: usesSocket ? leasesHere : leasesFar,
      token: this.#secret.token,
      node,
      cpus: spec.cpus,
      isHere: spec.by === 'local',
      ...(spec.by === 'block' ? { isBlock: true } : {}),
      times: spec.by === 'local' ? { ...this.#times, agent: FOR_EVER } : this.#times,
    }
  }

  /** Lets the agent of one node end. */
  dismiss(node: number): void {
    this.#members[node]?.link.end(false)
  }

  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    for (const { link } of this.#members) link.end()
  }

  /** At the end of the process, where nothing can be waited for; also for agents that did not end by themselves. */
  endNow(): void {
    this.#isEnding = true
    for (const { launched } of this.#members) launched?.kill()
    this.#close()
  }

  /** Agents end by themselves when they have been told to; resolves when all have, or after a while. */
  async gone(milliseconds: number): Promise<void> {
    const until = performance.now() + milliseconds
    const isAlive = ({ launched, link, hello }: Member): boolean =>
      launched !== null || (hello !== null && link.isConnected && !link.isGone)
    while (this.#members.some(isAlive) && performance.now() < until)
      await new Promise(resolve => setTimeout(resolve, 5))
    this.endNow()
  }

  /** The agent of a node did not come, or its launcher has ended. */
  agentEnded(node: number, reason: string, said = ''): void {
    const member = this.#members[node] as Member
    member.launched = null
    if (this.#isEnding) return
    if (member.hello) return this.#lost(node, reason)
    const why = said ? `${reason}: ${lastLine(said)}` : reason
    if (member.isFirst) return this.#refuse(unreachable(member.spec.name, why))
    if (member.link.isGone) return
    member.link.lost(why)
    this.events?.failed(member.spec.name, why)
  }

  #enlist(spec: NodeSpec, isFirst: boolean): number {
    const link = new NodeLink(spec.name, this.#members.length, this.holders)
    this.#members.push({
      spec,
      link,
      launched: null,
      hello: null,
      hasData: false,
      hasLease: false,
      isFirst,
    })
    return this.#members.length - 1
  }

  #launch(node: number): void {
    const member = this.#members[node] as Member
    if (member.spec.by === 'block') return
    member.launched = launch(member.spec, this.ordersFor(node), this.#run, {
      ended: (reason, said) => this.agentEnded(node, reason, said),
    })
  }

  #answerLeases(isFar: boolean): Promise<{ here: string; far: readonly string[] }> {
    return new Promise(resolve => {
      const { token } = this.#secret
      const options = { token, folder: this.#folder, isFar, times: this.#times }
      this.#answers = startAnswering(options, news => {
        if (news.type === 'listening') resolve(news)
        else this.#heard(news)
      })
    })
  }

  #heard(news: Exclude<LeaseNews, { type: 'listening' }>): void {
    const member = this.#members[news.node]
    if (!member) return
    if (news.type === 'called') {
      member.hasLease = true
      return this.#look()
    }
    if (this.#isEnding || member.link.isGone) return
    if (news.type === 'closed') return this.#lost(news.node, 'its connection was closed')
    if (news.health !== 'dead') return this.events?.suspected(news.node, news.health === 'suspect')
    const { launched } = member
    this.#lost(news.node, `nothing was heard of it for ${this.#times.dead / 1000} s`)
    launched?.kill()
  }

  #lost(node: number, reason: string): void {
    this.#answers?.order({ type: 'lost', node })
    this.#members[node]?.link.lost(reason)
  }

  #called(hello: AgentHello, socket: Socket, rest: Buffer): void {
    const member = this.#members[hello.node]
    if (member && hello.channel === 'package') {
      return sendPackage(socket, rest, why => this.agentEnded(hello.node, why))
    }
    const isNew = hello.channel === 'data' ? member?.hasData === false : member?.hello === null
    if (!member || member.link.isGone || !isNew || hello.channel === 'lease') return void socket.destroy()
    const difference = differenceOf(hello, this.#version)
    if (difference) {
      socket.destroy()
      const error = new MillraceError(
        'MR_NODE_VERSION',
        `node ${member.spec.name} (${hello.host}) ${difference}`,
      )
      if (member.isFirst) return this.#refuse(error)
      return this.agentEnded(hello.node, error.shortMessage)
    }
    if (hello.channel === 'data') {
      member.hasData = true
      member.link.attachBulk(socket, rest)
    } else {
      member.hello = hello
      member.link.peers = hello.peers
      member.link.attach(socket, rest)
      if (!member.isFirst) this.events?.joined(hello.node)
    }
    this.#look()
  }

  /** No further agents may call, and a killed coordinator leaves nothing behind. */
  #look(): void {
    if (this.#members.every(({ hello }) => hello)) this.#waiting?.resolve()
    const areHere = this.#members.every(one => one.hello && one.hasData && one.hasLease)
    if (!areHere || this.#staysOpen) return
    this.#listener.close()
    this.#answers?.order({ type: 'close' })
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #refuse(error: MillraceError): void {
    this.#waiting?.reject(error)
  }

  #close(): void {
    clearTimeout(this.#callTimer)
    this.#listener.end()
    this.#answers?.end()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

const unreachable = (node: string, reason: string): MillraceError =>
  new MillraceError('MR_NODE_UNREACHABLE', `the agent of node ${node} did not start: ${reason}`)

const lastLine = (text: string): string => text.split('\n').at(-1) ?? ''

const majorOf = (version: string): string => version.split('.')[0] ?? ''

function differenceOf(hello: AgentHello, version: string): string | null {
  if (hello.protocol !== PROTOCOL || hello.version !== version) {
    return `has Millrace ${hello.version}, and this is ${version}`
  }
  const own = process.versions.node
  return majorOf(hello.nodeVersion) === majorOf(own)
    ? null
    : `has Node ${hello.nodeVersion}, and this is ${own}`
}
