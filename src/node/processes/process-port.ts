import type { Processes } from './processes.ts'

/** Where programs come from: of this machine, or of another one. */
export type ProcessPort = Pick<
  Processes,
  'start' | 'create' | 'drain' | 'flush' | 'hasLanes' | 'suspect' | 'end'
>
