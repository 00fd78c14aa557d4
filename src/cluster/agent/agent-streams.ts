import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { SitePlace } from '../../node/files/stream-site.ts'
import { LiveBoard } from '../../stream/board/live-board.ts'
import { layerFor, privateFolder } from '../../stream/board/workspace.ts'
import type { StreamAnswer, StreamOrder } from '../link/stream-orders.ts'
import { LiveRelay } from '../streams/live-relay.ts'

interface Host {
  /** The folder is to be removed when this process is killed. */
  announce(folder: string): void
  answer(answer: StreamAnswer): void
  /** Bytes for the relay of the coordinator. */
  send(bytes: Uint8Array): void
  took(bytes: number): void
  /** Nothing that grows here can go on. */
  broken(why: string): void
}

/** Growing files of this node: a board, a folder in memory, and a relay to the coordinator. */
export class AgentStreams {
  readonly #host: Host
  readonly #folders: string[] = []
  #root = ''
  #board: LiveBoard | null = null
  #relay: LiveRelay | null = null

  constructor(host: Host) {
    this.#host = host
  }

  order(order: StreamOrder): void {
    switch (order.op) {
      case 'drop':
        return void rm(dirname(join(this.#root, order.name)), { recursive: true, force: true }).catch(
          () => undefined,
        )
      default: {
        const { id } = order
        this.#do(order).then(
          place => this.#host.answer(place ? { id, place } : { id }),
          (error: unknown) => this.#host.answer({ id, error: factsOf(error) }),
        )
      }
    }
  }

  take(bytes: Uint8Array): void {
    this.#relay?.take(bytes)
  }

  taken(bytes: number): void {
    this.#relay?.taken(bytes)
  }

  /** Folders that are left are removed by the watchdog. */
  endNow(): void {
    this.#relay?.end()
    this.#board?.end()
  }

  /** Without a pause: this process ends as soon as its connection is closed. */
  end(): void {
    this.endNow()
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true })
  }

  async #do(order: StreamOrder & { op: 'open' | 'know' }): Promise<SitePlace | null> {
    if (order.op === 'open') return this.#open(order.workflow)
    const { steps, files } = order
    const board = this.#board as LiveBoard
    for (const { name } of files) mkdirSync(dirname(join(this.#root, name)), { recursive: true })
    for (const step of steps) board.step(step)
    for (const { name, step, rules } of files) board.file(name, step, rules)
    await board.sync()
    return null
  }

  async #open(workflow: string): Promise<SitePlace> {
    const root = await privateFolder(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'streams')
    this.#root = root
    this.#keep(root)
    const layer = await layerFor(root)
    if (layer !== undefined) this.#keep(layer)
    await writeFile(join(root, '.keep'), '')
    const board = await LiveBoard.start(workflow, root, layer, () => undefined)
    this.#board = board
    const { tools } = board
    this.#relay = new LiveRelay(tools, workflow, 'all', {
      send: bytes => this.#host.send(bytes),
      took: bytes => this.#host.took(bytes),
      broken: why => this.#host.broken(why),
    })
    return { root, tools, workflow }
  }

  #keep(folder: string): void {
    this.#folders.push(folder)
    this.#host.announce(folder)
  }
}

function factsOf(error: unknown): NonNullable<StreamAnswer['error']> {
  if (error instanceof MillraceError)
    return { code: error.code, message: error.shortMessage, hint: error.hint }
  return { code: 'MR_TRANSFER', message: error instanceof Error ? error.message : String(error), hint: '' }
}
