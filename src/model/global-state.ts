import type { Host } from './client.ts'
import type { Definition } from './definition.ts'

/**
 * What there is once per thread, also when Millrace itself was loaded twice there: a CommonJS program that runs
 * through tsx gets a copy of its own beside the one that the thread was started with.
 */
interface GlobalState {
  host: Host | null
  definitions: Map<string, Definition>
  modules: Set<string>
  counts: Map<string, number>
  /**
   * Where the program is on a machine to which it was sent: what the coordinator has at a path is below this folder. Null
   * where it is at the same path.
   */
  moduleRoot: string | null
}

const KEY = Symbol.for('millrace.state.1')

const holder = globalThis as unknown as Record<symbol, GlobalState | undefined>

export const globalState: GlobalState = (holder[KEY] ??= {
  host: null,
  definitions: new Map(),
  modules: new Set(),
  counts: new Map(),
  moduleRoot: null,
})
