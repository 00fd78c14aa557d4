import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { SectionName, Sections } from '../src/report/dashboard/protocol.ts'
import type { Connection, Source } from './source.ts'

/** The latest of each section, and what to call when one changes. */
export class Store {
  readonly source: Source
  connection: Connection = 'connecting'
  readonly #sections: { [N in SectionName]?: Sections[N] } = {}
  readonly #listeners = new Set<() => void>()
  #stop: (() => void) | null = null

  constructor(source: Source) {
    this.source = source
  }

  /** Only what is shown is asked for. */
  show(sections: readonly SectionName[]): void {
    this.#stop?.()
    this.#stop = this.source.subscribe(
      sections,
      (name, section) => {
        this.#sections[name] = section
        this.#changed()
      },
      connection => {
        this.connection = connection
        this.#changed()
      },
    )
  }

  get<N extends SectionName>(name: N): Sections[N] | undefined {
    return this.#sections[name]
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(): void {
    for (const listener of this.#listeners) listener()
  }
}

export const StoreContext = createContext<Store>(null as unknown as Store)

export const useStore = (): Store => useContext(StoreContext)

/** The latest state of a section; the component is drawn again when it changes. */
export function useSection<N extends SectionName>(name: N): Sections[N] | undefined {
  const store = useStore()
  const [section, setSection] = useState(() => store.get(name))
  useEffect(() => {
    setSection(() => store.get(name))
    return store.listen(() => setSection(() => store.get(name)))
  }, [store, name])
  return section
}

export function useConnection(): Connection {
  const store = useStore()
  const [connection, setConnection] = useState(store.connection)
  useEffect(() => store.listen(() => setConnection(store.connection)), [store])
  return connection
}
