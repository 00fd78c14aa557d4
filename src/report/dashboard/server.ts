import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MillraceError } from '../../core/errors.ts'
import type { Allowance } from './allowance.ts'
import { isForged, readControl } from './control.ts'
import { Feed } from './feed.ts'
import { LiveRun } from './live-run.ts'
import { metricsText } from './metrics.ts'
import { MAX_LEVEL } from './state/tiles.ts'
import { isPageFile, readPageFile, typeOf } from './page-files.ts'
import type { ControlAnswer, Controls, SectionName } from './protocol.ts'
import { nearGraph } from './sections/graph.ts'
import { findTasks } from './sections/task-facts.ts'
import { taskAt } from './sections/timeline.ts'
import { whoIs } from './who.ts'

export interface DashboardOptions {
  /** The journal of the run. */
  journal: string
  /** @default 127.0.0.1 */
  host?: string
  /** 0: any that is free. */
  port?: number
  /** What it may cost a run that goes on. Without one, whatever it takes: the run and its page do not share CPUs. */
  allowance?: Allowance
  /** Passes on what pages ask of the run. Without it they can only look. */
  controls?: Controls
  /** Told when the first page is open, and when the last has gone. */
  watched?: (isWatched: boolean) => void
}

const SECTIONS: readonly SectionName[] = [
  'run',
  'overview',
  'failures',
  'timeline',
  'graph',
  'storage',
  'streams',
  'data',
  'nodes',
]

/** Nothing from elsewhere, nothing inline, in no frame. */
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-store',
} as const

/** Where the page is: to look, and to act as well, if that is allowed. */
export interface PageAddresses {
  url: string
  controlUrl: string | null
}

/**
 * Serves one run to any number of pages. All addresses begin with a token, which is the only key: there are no cookies. Another
 * token lets pages act on the run, so that an address to look can be passed on. The page uses relative addresses only, so it
 * works behind a proxy that adds a path.
 */
export class DashboardServer {
  readonly run: LiveRun
  readonly token = randomBytes(16).toString('hex')
  readonly #controlToken = randomBytes(16).toString('hex')
  readonly #feed: Feed
  readonly #server: Server
  readonly #options: DashboardOptions

  constructor(options: DashboardOptions) {
    this.#options = options
    this.run = new LiveRun(options.journal, options.allowance)
    this.#feed = new Feed(this.run, options.watched)
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        if (!response.headersSent) send(response, 500, 'text/plain', `${String(error)}\n`)
        else response.destroy()
      })
    })
  }

  /** Resolves to the addresses of the page. */
  async listen(): Promise<PageAddresses> {
    const { host = '127.0.0.1', port = 0 } = this.#options
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', cause => reject(cannotListen(host, port, cause)))
      this.#server.listen(port, host, resolve)
    })
    const { port: taken } = this.#server.address() as AddressInfo
    const base = `http://${host.includes(':') ? `[${host}]` : host}:${taken}`
    const controlUrl = this.#options.controls ? `${base}/${this.#controlToken}/` : null
    return { url: `${base}/${this.token}/`, controlUrl }
  }

  get pageCount(): number {
    return this.#feed.pageCount
  }

  /** Sends the last state to all pages, then ends. */
  async close(): Promise<void> {
    // The run needs its CPUs no longer.
    this.run.allowance = null
    if (this.#feed.pageCount > 0) await this.#feed.flush()
    this.#feed.close()
    await new Promise<void>(resolve => {
      this.#server.close(() => resolve())
      this.#server.closeIdleConnections()
      setTimeout(() => this.#server.closeAllConnections(), 500).unref()
    })
    await this.run.close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const [, token = '', name = ''] = url.pathname.split('/')
    const controls = isSame(token, this.#controlToken) ? this.#options.controls : undefined
    if (!isSame(token, this.token) && !controls) {
      return send(
        response,
        404,
        'text/plain',
        'Nothing is here. The address needs the token that was printed.\n',
      )
    }
    // Without the last slash, relative addresses would lose the token.
    if (url.pathname === `/${token}`) {
      response.writeHead(308, { ...HEADERS, Location: `${token}/` }).end()
      return
    }
    if (name === 'control' && request.method === 'POST' && controls)
      return this.#control(request, response, controls)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return send(response, 405, 'text/plain', 'Only GET is allowed.\n')
    const file = name === '' ? 'index.html' : name
    if (isPageFile(file)) return send(response, 200, typeOf(file), readPageFile(file))
    if (name === 'control') return sendJson(response, { isAllowed: controls !== undefined })
    if (name === 'events') return this.#events(url, response)
    if (name === 'metrics') {
      await this.run.read()
      return send(response, 200, 'text/plain; version=0.0.4; charset=utf-8', metricsText(this.run))
    }
    const found = await this.#query(name, url.searchParams)
    if (found === undefined)
      return send(response, 404, 'text/plain', `There is no ${JSON.stringify(name)}.\n`)
    sendJson(response, found)
  }

  async #control(request: IncomingMessage, response: ServerResponse, controls: Controls): Promise<void> {
    const reason = isForged(request)
    if (reason !== null) return send(response, 403, 'text/plain', reason)
    const asked = await readControl(request)
    if (asked === null) return send(response, 400, 'text/plain', 'This cannot be asked of a run.\n')
    const answer: ControlAnswer = this.run.isOver
      ? { problem: 'The run has ended.' }
      : await controls({ ...asked, by: await whoIs(request.socket) })
    sendJson(response, answer)
  }

  #events(url: URL, response: ServerResponse): void {
    const asked = (url.searchParams.get('sections') ?? 'run,overview').split(',')
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
    this.#feed.join(
      response,
      SECTIONS.filter(section => asked.includes(section)),
    )
  }

  /** What pages ask for: undefined if there is no such question, null if it has no answer. */
  async #query(name: string, query: URLSearchParams): Promise<unknown> {
    const number = (key: string): number => {
      const value = Number(query.get(key))
      return Number.isFinite(value) ? value : 0
    }
    const { run } = this
    switch (name) {
      case 'section': {
        const section = SECTIONS.find(one => one === query.get('name'))
        if (section === undefined) return undefined
        await run.read()
        return run.section(section)
      }
      case 'tile':
        return run.tile(
          Math.max(0, Math.min(MAX_LEVEL, Math.round(number('level')))),
          number('index'),
          number('group'),
        )
      case 'at':
        return { task: taskAt(run.model, number('row'), number('time'), number('reach')) }
      case 'task':
        return run.task(number('id'))
      case 'near':
        return nearGraph(run.model, number('task'), Math.max(1, Math.min(4, number('hops'))))
      case 'find':
        return findTasks(run.model, (query.get('q') ?? '').slice(0, 200))
      default:
        return undefined
    }
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { ...HEADERS, 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
  response.end(body)
}

const sendJson = (response: ServerResponse, found: unknown): void =>
  send(response, 200, 'application/json; charset=utf-8', JSON.stringify(found))

/** Takes the same time wherever the two differ. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

function cannotListen(host: string, port: number, cause: Error): MillraceError {
  const isTaken = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
  return new MillraceError('MR_DASHBOARD', `the page cannot be served at ${host}:${port}`, {
    cause,
    hint: isTaken ? 'The port is taken: name another, or none.' : `${cause.message}.`,
  })
}
