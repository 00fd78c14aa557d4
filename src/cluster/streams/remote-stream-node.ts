import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { Instance } from '../../stream/run/runner.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import { commandOn } from '../launch/command-on.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import type { FrameReader } from '../link/frames.ts'
import { FrameLink } from './frame-link.ts'
import type { FromStreamNode, NodeResult, StreamOrders, ToStreamNode } from './messages.ts'

export interface StreamNodeEvents {
  relayed(type: number, frame: Buffer, content: FrameReader): void
  line(step: string, text: string, to: 'stdout' | 'stderr'): void
  note(text: string): void
  ended(instance: Instance): void
  looked(): void
  /** It will say nothing more. `reason` is null when it ended in order. */
  gone(reason: string | null): void
}

const SAID = 2000

/** A node of a streaming workflow, as the coordinator sees it. */
export class RemoteStreamNode {
  readonly name: string
  readonly link: FrameLink<FromStreamNode, ToStreamNode>
  /** CPUs and version, once it has called. */
  readonly hello: Promise<{ cpus: number; version: string }>
  snapshot: Snapshot | null = null
  result: NodeResult | null = null
  isGone = false
  readonly #child: ChildProcess

  constructor(spec: NodeSpec, events: StreamNodeEvents) {
    this.name = spec.name
    const { program, args } = commandOn(spec, ['stream', 'node'])
    // Ctrl-C is for the coordinator, which stops the nodes in order.
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true })
    this.#child = child
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-SAID)))
    let greet: (hello: { cpus: number; version: string }) => void
    let refuse: (error: Error) => void
    this.hello = new Promise((resolve, reject) => {
      greet = resolve
      refuse = reject
    })
    this.hello.catch(() => undefined)
    let fault: string | null = null
    const gone = (reason: string): void => {
      if (this.isGone) return
      this.isGone = true
      const why = fault ?? [reason, said.trim()].filter(Boolean).join(': ')
      refuse(new Error(why))
      events.gone(this.result ? null : why)
    }
    this.link = new FrameLink(child.stdout, child.stdin, {
      relayed: (type, frame, content) => events.relayed(type, frame, content),
      message: message => {
        switch (message.say) {
          case 'hello':
            return greet({ cpus: spec.cpus ?? message.cpus, version: message.version })
          case 'line':
            return events.line(message.step, message.text, message.to)
          case 'note':
            return events.note(message.text)
          case 'ended':
            return events.ended(message.instance)
          case 'look':
            this.snapshot = message.snapshot
            return events.looked()
          case 'result':
            this.result = message.result
            return
          case 'fault':
            fault = message.hint ? `${message.message} (${message.hint})` : message.message
            return
          case 'started':
            return
        }
      },
    })
    child.on('error', error => {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      gone(isMissing ? `${program} is not installed` : error.message)
    })
    child.on('close', (code, signal) =>
      gone(signal ? `its process was ended by ${signal}` : `its process ended with ${code}`),
    )
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

  /** It ends by itself when its input ends. */
  close(): void {
    this.#child.stdin?.end()
  }
}
