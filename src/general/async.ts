const asyncPrototype: unknown = Object.getPrototypeOf(async () => undefined)

/** It was written with `async`. */
export const isAsync = (body: Function): boolean => Object.getPrototypeOf(body) === asyncPrototype

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
