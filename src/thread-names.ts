import type { Policy } from './core/schedule/policy.ts'

/**
 * What `millrace` is in compute threads (package.json, condition `millrace-thread`): the same names without
 * the runtime behind them, because every thread loads it before its first task.
 */
export * from './names.ts'
export { configure } from './runtime/run-options.ts'
export { observe } from './runtime/observers.ts'

/** The policy is the coordinator's business. */
export function usePolicy(_policy: Policy): void {}
