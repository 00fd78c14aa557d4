/** What goes wrong outside the configuration: no compiler, no board, a directory that cannot be used. */
export class StreamError extends Error {
  override name = 'StreamError'
  readonly code: StreamErrorCode
  readonly shortMessage: string
  readonly fix: string

  constructor(code: StreamErrorCode, shortMessage: string, fix: string) {
    super(`${shortMessage}\n  fix: ${fix} [${code}]`)
    this.code = code
    this.shortMessage = shortMessage
    this.fix = fix
  }
}

export type StreamErrorCode =
  'MR_STREAM_PLATFORM' | 'MR_STREAM_BUILD' | 'MR_STREAM_BOARD' | 'MR_STREAM_DIR' | 'MR_STREAM_STEPS'
