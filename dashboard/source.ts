import type {
  ControlAnswer,
  ControlRequest,
  FoundTask,
  GraphSection,
  SectionName,
  Sections,
  TaskFacts,
  TileAnswer,
} from '../src/report/dashboard/protocol.ts'

export type Connection = 'connecting' | 'open' | 'lost' | 'ended'

/** Where the page gets what it shows: a server, or what a report has inside. */
export interface Source {
  readonly isLive: boolean
  /** Passes on sections now and whenever they change. Returns what ends it. */
  subscribe(
    sections: readonly SectionName[],
    onSection: <N extends SectionName>(name: N, section: Sections[N]) => void,
    onConnection: (connection: Connection) => void,
  ): () => void
  tile(level: number, index: number, group: number): Promise<TileAnswer>
  taskAt(row: number, time: number, reach: number): Promise<number | null>
  task(id: number): Promise<TaskFacts | null>
  near(task: number, hops: number): Promise<GraphSection>
  find(query: string): Promise<FoundTask[]>
  /** Whether this page may act on the run. */
  mayControl(): Promise<boolean>
  control(request: ControlRequest): Promise<ControlAnswer>
}

/** Asks the server that the page came from. Addresses are relative: a proxy may add a path, and the token is in it. */
export class ServerSource implements Source {
  readonly isLive = true
  /** The run has ended: when its page is gone, that was to be expected. */
  #isOver = false

  subscribe(
    sections: readonly SectionName[],
    onSection: <N extends SectionName>(name: N, section: Sections[N]) => void,
    onConnection: (connection: Connection) => void,
  ): () => void {
    let events: EventSource | null = null
    let timer = 0
    let lost = 0
    const open = (): void => {
      events = new EventSource(`events?sections=${sections.join(',')}`)
      events.onopen = () => {
        lost = 0
        onConnection('open')
      }
      events.onerror = () => {
        onConnection(this.#isOver ? 'ended' : 'lost')
        // Browsers try again by themselves, but not after every kind of failure.
        if (events?.readyState !== EventSource.CLOSED) return
        events.close()
        timer = window.setTimeout(open, Math.min(10_000, 500 * 2 ** lost++))
      }
      for (const name of sections) {
        events.addEventListener(name, event => {
          const section = JSON.parse((event as MessageEvent<string>).data) as Sections[typeof name]
          if (name === 'run') this.#isOver = (section as Sections['run']).state !== 'running'
          onSection(name, section)
        })
      }
    }
    onConnection('connecting')
    open()
    return () => {
      window.clearTimeout(timer)
      events?.close()
    }
  }

  tile(level: number, index: number, group: number): Promise<TileAnswer> {
    return get(`tile?level=${level}&index=${index}&group=${group}`)
  }

  async taskAt(row: number, time: number, reach: number): Promise<number | null> {
    return (await get<{ task: number | null }>(`at?row=${row}&time=${time}&reach=${reach}`)).task
  }

  task(id: number): Promise<TaskFacts | null> {
    return get(`task?id=${id}`)
  }

  near(task: number, hops: number): Promise<GraphSection> {
    return get(`near?task=${task}&hops=${hops}`)
  }

  find(query: string): Promise<FoundTask[]> {
    return get(`find?q=${encodeURIComponent(query)}`)
  }

  async mayControl(): Promise<boolean> {
    return (await get<{ isAllowed: boolean }>('control')).isAllowed
  }

  /** The header and the type make browsers ask before another site could send this. */
  control(request: ControlRequest): Promise<ControlAnswer> {
    return get('control', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Millrace-Control': '1' },
      body: JSON.stringify(request),
    })
  }
}

async function get<T>(address: string, options: RequestInit = {}): Promise<T> {
  const response = await fetch(address, options)
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as T
}
