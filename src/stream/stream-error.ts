import { MillraceError } from '../core/errors.ts'

/** What goes wrong outside the configuration: no compiler, no board, a directory that cannot be used. */
export class StreamError extends MillraceError {
  override name = 'StreamError'
  declare readonly code: StreamErrorCode

  constructor(code: StreamErrorCode, shortMessage: string, fix: string) {
    super(code, shortMessage, { hint: fix })
  }

  get fix(): string {
    return this.hint
  }
}

export type StreamErrorCode =
  'MR_STREAM_PLATFORM' | 'MR_STREAM_BUILD' | 'MR_STREAM_BOARD' | 'MR_STREAM_DIR' | 'MR_STREAM_STEPS'
