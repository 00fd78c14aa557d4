import type { ServerResponse } from 'node:http'
import type { LiveRun } from './live-run.ts'
import type { SectionName } from './protocol.ts'

/** At least so long between two updates, in milliseconds, … */
const LEAST_WAIT = 500
/** … and at least this multiple of the time that the last one took. */
const REST = 40
const MOST_WAIT = 5000
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
  readonly #pages = new Set<Page>()
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(run: LiveRun) {
    this.#run = run
  }

  get pageCount(): number {
    return this.#pages.size
  }

  join(response: ServerResponse, sections: readonly SectionName[]): void {
    const page: Page = { response, sections, sent: new Map(), isBehind: false, quietSince: Date.now() }
    this.#pages.add(page)
    // A page that was cut off comes back after this many milliseconds.
    response.write('retry: 1000\n\n')
    response.on('drain', () => (page.isBehind = false))
    response.on('close', () => this.#pages.delete(page))
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    void this.#update()
  }

  /** Sends what is new to all pages at once, for the end of a run. */
  async flush(): Promise<void> {
    await this.#update()
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { response } of this.#pages) response.end()
  }

  async #update(): Promise<void> {
    const begun = performance.now()
    // Pages see a long journal being read; they do not wait for its end.
    const reading = this.#run.read().catch(() => {})
    await Promise.race([reading, new Promise(resolve => setTimeout(resolve, LEAST_WAIT))])
    if (this.#isClosed) return
    this.#send()
    this.#schedule(performance.now() - begun)
  }

  #send(): void {
    const texts = new Map<SectionName, string>()
    for (const page of this.#pages) {
      for (const name of page.sections) {
        if (page.isBehind) break
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

  #schedule(took: number): void {
    if (this.#timer !== null || this.#pages.size === 0 || this.#isClosed) return
    const wait = this.#run.isOver ? MOST_WAIT : Math.max(LEAST_WAIT, Math.min(MOST_WAIT, took * REST))
    this.#timer = setTimeout(() => {
      this.#timer = null
      void this.#update()
    }, wait)
  }
}
