/** One instance of a step, and how it ended. */
export interface Instance {
  step: string
  number: number
  command: string
  started: number
  ended: number | undefined
  /** Exit code, 128 + signal when killed, as a shell counts. */
  code: number | undefined
  /** Last lines on its stderr, for the report. */
  tail: string[]
}
