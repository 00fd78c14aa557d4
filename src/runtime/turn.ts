/**
 * Where nothing runs any more, waiting takes no time. A program that handles errors and tries again would leave
 * no moment in which a signal is seen.
 */
export const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
