/**
 * How a task is carried out. A new form needs a row here, with all that the core and the model have to know of it, and a
 * `TaskForm` (src/node/task-form.ts) in the table of `LocalNode`, which prepares, launches, stops and collects its tasks.
 * Nothing else asks a task for its form: it asks for the property that it needs.
 */
export type Form = 'function' | 'command' | 'mpi'

export interface FormTraits {
  /** Only what runs on threads takes the values of a stream, and has further versions (`implement`). */
  readonly runsOn: 'threads' | 'programs' | 'ranks'
  /** Its reads and writes of files can be made to wait: it may read a file that still grows, and its outputs may be streams. */
  readonly streamsFiles: boolean
  /** Waits on a lane behind others without being asked, and is moved from a full lane to an idle one. */
  readonly queuesFreely: boolean
  /** Begins when it has all its CPUs to itself, however short it is. */
  readonly neverQueues: boolean
  /**
   * How much short work a lane may hold, in milliseconds: enough to hide a round trip, too little to matter when misjudged.
   * A program takes as long to start as many functions run.
   */
  readonly laneLoad: number
  /** Tasks that take longer, in milliseconds, do not count as short. */
  readonly short: number
  /**
   * Tasks of up to this many milliseconds may wait behind others while enough tasks are left for all lanes to the end: their
   * lane need not wait for the coordinator between two of them.
   */
  readonly brief: number
  /** A lane is silent when its task has run for this many milliseconds and nothing was heard of it. */
  readonly silent: number
}

export const FORMS: Readonly<Record<Form, FormTraits>> = {
  function: {
    runsOn: 'threads',
    streamsFiles: false,
    queuesFreely: true,
    neverQueues: false,
    laneLoad: 2,
    short: 0.5,
    brief: 10,
    silent: 10,
  },
  command: {
    runsOn: 'programs',
    streamsFiles: true,
    queuesFreely: false,
    neverQueues: false,
    laneLoad: 32,
    short: 4,
    brief: 4,
    // Exits of programs are reported in batches.
    silent: 20,
  },
  mpi: {
    runsOn: 'ranks',
    streamsFiles: false,
    queuesFreely: false,
    neverQueues: true,
    laneLoad: 0,
    short: 0,
    brief: 0,
    silent: 20,
  },
}
