import type { ServerResponse } from 'node:http'
import type { LiveRun } from './live-run.ts'
import type { SectionName } from './protocol.ts'

/** So long between two updates, in milliseconds: longer, where more often would cost the run too much. */
const LEAST_WAIT = 500
const MOST_WAIT = 5000
/** Of what an update may cost, sending takes at most this fraction (one part in N); the rest is for reading. */
const PARTS = 2
/** A proxy may cut a connection on which nothing is sent. */
const SILENCE_MS = 15_000

interface Page {
  readonly response: ServerResponse
  readonly sections: readonly SectionName[]
  /** What it has, by section. */
  readonly sent: Map<SectionName, string>
  /** Its connection is full: it gets nothing until it has read that. */
  isBehind: boolean
  quietSince: number
}

/**
 * Sends sections to pages whenever they have changed, as server-sent events. Each section is made once for all pages. A page
 * that reads slowly misses states in between and gets the latest when it is ready. While there is no page, the journal is not
 * read.
 */
export class Feed {
  readonly #run: LiveRun
  /** Told when the first page has come, and when the last has gone. */
  readonly #watched: (isWatched: boolean) => void
  readonly #pages = new Set<Page>()
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(run: LiveRun, watched: (isWatched: boolean) => void = () => {}) {
    this.#run = run
    this.#watched = watched
  }

  get pageCount(): number {
    return this.#pages.size
  }

  join(response: ServerResponse, sections: readonly SectionName[]): void {
    const page: Page = { response, sections, sent: new Map(), isBehind: false, quietSince: Date.now() }
    this.#pages.add(page)
    if (this.#pages.size === 1) this.#watched(true)
    // A page that was cut off comes back after this many milliseconds.
    response.write('retry: 1000\n\n')
    response.on('drain', () => (page.isBehind = false))
    response.on('close', () => {
      if (this.#pages.delete(page) && this.#pages.size === 0) this.#watched(false)
    })
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    void this.#update()
  }

  /** Reads to the end of the journal and sends that, for the end of a run. Pages see a long one being read. */
  async flush(): Promise<void> {
    // A pass under way may have looked for more just before the last events were written.
    const reading = this.#run
      .read()
      .then(() => this.#run.read())
      .then(() => true)
      .catch(() => true)
    let isRead = false
    while (!isRead && !this.#isClosed && this.#pages.size > 0) {
      isRead = await Promise.race([reading, later(false)])
      this.#send()
    }
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    // A page that is behind gets the end, too: it comes after what it has not read yet.
    this.#send(true)
    for (const { response } of this.#pages) response.end()
  }

  async #update(): Promise<void> {
    // Pages see a long journal being read; they do not wait for its end.
    const reading = this.#run.read().catch(() => {})
    await Promise.race([reading, later(undefined)])
    if (this.#isClosed) return
    const { allowance } = this.#run
    const before = allowance?.spent ?? 0
    this.#send()
    this.#schedule((allowance?.spent ?? 0) - before)
  }

  #send(isLast = false): void {
    const texts = new Map<SectionName, string>()
    for (const page of this.#pages) {
      for (const name of page.sections) {
        if (page.isBehind && !isLast) break
        let text = texts.get(name)
        if (text === undefined) texts.set(name, (text = JSON.stringify(this.#run.section(name))))
        if (page.sent.get(name) === text) continue
        page.sent.set(name, text)
        page.quietSince = Date.now()
        if (!page.response.write(`event: ${name}\ndata: ${text}\n\n`)) page.isBehind = true
      }
      if (Date.now() - page.quietSince > SILENCE_MS && !page.isBehind) {
        page.quietSince = Date.now()
        page.response.write(': still here\n\n')
      }
    }
  }

  /** `cost`: what sending took of the allowance. */
  #schedule(cost: number): void {
    if (this.#timer !== null || this.#pages.size === 0 || this.#isClosed) return
    const { allowance, age, isOver } = this.#run
    const needed = allowance?.until(cost * PARTS, age) ?? 0
    const wait = isOver ? MOST_WAIT : Math.max(LEAST_WAIT, Math.min(MOST_WAIT, needed))
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#update()
    }, wait)
  }
}

const later = <T>(value: T): Promise<T> =>
  new Promise(resolve => setTimeout(() => resolve(value), LEAST_WAIT))
