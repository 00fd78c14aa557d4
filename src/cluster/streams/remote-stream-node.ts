import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { commandOn } from '../launch/command-on.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { FrameLink } from './frame-link.ts'
import { PULSE } from './messages.ts'
import { SitePrograms } from './site-programs.ts'
import type { ProbeOrder } from './sight.ts'
import type { Begun, FromStreamNode, NodeResult, Sent, StreamOrders, ToStreamNode } from './messages.ts'

export interface StreamNodeEvents {
  /** A frame for another node, that cannot be reached from there. */
  carried(frame: Buffer): void
  note(text: string): void
  looked(): void
  /** Steps can start. */
  started(begun: Begun): void
  /** It will say nothing more. `reason` is null when it ended in order. */
  gone(reason: string | null): void
}

export type Hello = Omit<Extract<FromStreamNode, { say: 'hello' }>, 'say'>

const SAID = 2000
/** Milliseconds for what is left in the pipes of a process that has ended. */
const LINGERING = 5000

/** A node of a streaming workflow, as the coordinator sees it. */
export class RemoteStreamNode {
  readonly name: string
  readonly link: FrameLink<FromStreamNode, ToStreamNode>
  /** Programs of steps there. */
  readonly programs: SitePrograms
  /** What it has, and its version, once it has called. */
  readonly hello: Promise<Hello>
  /** Where other nodes can call it, once it was asked to listen. */
  readonly addresses: Promise<readonly string[]>
  snapshot: Snapshot | null = null
  sent: readonly Sent[] = []
  result: NodeResult | null = null
  isGone = false
  readonly #child: ChildProcess
  readonly #lose: (reason: string) => void
  /** Waits for the answers to probes, in their order. */
  readonly #probed: ((isWell: boolean) => void)[] = []
  /** Pulses of ours since it was heard last. */
  #silent = 0
  #hasCalled = false

  constructor(spec: NodeSpec, events: StreamNodeEvents) {
    this.name = spec.name
    const { program, args } = commandOn(spec, ['stream', 'node'])
    // Ctrl-C is for the coordinator, which stops the nodes in order.
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    this.#child = child
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-SAID)))
    let greet: (hello: Hello) => void
    let refuse: (error: Error) => void
    this.hello = new Promise((resolve, reject) => {
      greet = resolve
      refuse = reject
    })
    this.hello.catch(() => undefined)
    let listens: (addresses: readonly string[]) => void
    let cannot: (error: Error) => void
    this.addresses = new Promise((resolve, reject) => {
      listens = resolve
      cannot = reject
    })
    this.addresses.catch(() => undefined)
    let fault: string | null = null
    let lingering: NodeJS.Timeout | undefined
    const gone = (reason: string): void => {
      if (this.isGone) return
      clearTimeout(lingering)
      this.isGone = true
      const why = fault ?? [reason, said.trim()].filter(Boolean).join(': ')
      refuse(new Error(why))
      cannot(new Error(why))
      for (const answer of this.#probed.splice(0)) answer(false)
      events.gone(this.result ? null : why)
      this.programs.cutOff(`node ${spec.name} was lost: ${why}`)
    }
    this.link = new FrameLink(child.stdout, child.stdin, {
      relayed: (_, frame) => {
        this.#silent = 0
        events.carried(frame)
      },
      message: message => {
        this.#silent = 0
        switch (message.say) {
          case 'hello':
            this.#hasCalled = true
            return greet({ ...message, cpus: spec.cpus ?? message.cpus })
          case 'listening':
            return listens(message.addresses)
          case 'probed':
            return this.#probed.shift()?.(message.isWell)
          case 'note':
            return events.note(message.text)
          case 'printed':
            return this.programs.printed(message.id, message.bytes)
          case 'ran':
            return this.programs.ran(message.id, message.result)
          case 'refused':
            return this.programs.refused(message.id, message.error)
          case 'look':
            this.snapshot = message.snapshot
            this.sent = message.sent
            return events.looked()
          case 'result':
            this.result = message.result
            this.sent = message.result.sent
            return
          case 'fault':
            fault = message.hint ? `${message.message} (${message.hint})` : message.message
            return
          case 'started':
            this.programs.begin()
            return events.started(message.begun)
          case 'pulse':
            return
        }
      },
    })
    this.programs = new SitePrograms(message => this.link.say(message))
    child.on('error', error => {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      gone(isMissing ? `${program} is not installed` : error.message)
    })
    const ended = (code: number | null, signal: NodeJS.Signals | null): void =>
      gone(signal ? `its process was ended by ${signal}` : `its process ended with ${code}`)
    // What it said last is read first. A process that it left behind may hold its output open.
    child.on('exit', (code, signal) => {
      if (!this.isGone) lingering = setTimeout(() => ended(code, signal), LINGERING)
    })
    child.on('close', ended)
    this.#lose = reason => {
      gone(reason)
      child.kill('SIGKILL')
    }
  }

  listen(node: number, token: string, isFar: boolean): void {
    this.link.say({ do: 'listen', node, token, isFar })
  }

  probe(order: ProbeOrder): Promise<boolean> {
    if (this.isGone) return Promise.resolve(false)
    return new Promise(resolve => {
      this.#probed.push(resolve)
      this.link.say({ do: 'probe', order })
    })
  }

  /** Another node is lost. */
  lost(node: number): void {
    this.link.say({ do: 'lost', node })
  }

  start(orders: StreamOrders): void {
    this.link.say({ do: 'start', orders })
  }

  stop(): void {
    this.link.say({ do: 'stop' })
  }

  finish(isOk: boolean): void {
    this.link.say({ do: 'finish', isOk })
  }

  /** Called each second: counts how long nothing came, of the time in which this process ran. */
  pulse(timeout: number): void {
    if (this.isGone) return
    this.link.say({ do: 'pulse' })
    this.#silent++
    if (this.#silent * PULSE <= timeout) return
    const seconds = `${Math.round(timeout / 1000)} s`
    this.#lose(this.#hasCalled ? `nothing was heard of it for ${seconds}` : `no call within ${seconds}`)
  }

  /** It ends by itself when its input ends. One that never called has nothing to end. */
  close(): void {
    this.#child.stdin?.end()
    if (!this.#hasCalled) this.#child.kill('SIGKILL')
    if (!this.isGone) this.#child.unref()
  }
}
