import type {
  CommandProcess,
  CommandRequest,
  CommandResult,
} from '../../src/node/processes/command-process.ts'

/** The end of the program as a promise. */
export const ran = (process: CommandProcess, request: CommandRequest): Promise<CommandResult> =>
  new Promise((resolve, reject) => process.start(request, { ended: resolve, failed: reject }))
