/**
 * Large arrays travel in shared memory, so in a thread an array that was plain in the program may be a view of a
 * `SharedArrayBuffer`. For the code of a task it has to behave as the plain one would: captured at each call, and never
 * the memory of two data. What the program itself shares (`shared`) is not noted.
 */
const uses = new WeakMap<object, 'writer' | 'reader'>()

/** Called for the memory of an argument when it arrives. Null: the program shares it, and tasks work on it in place. */
export function noteMemory(buffer: ArrayBufferLike, use: 'writer' | 'reader' | null): void {
  if (!(buffer instanceof SharedArrayBuffer)) return
  if (use) uses.set(buffer, use)
  else uses.delete(buffer)
}

/** Whether the program shares it: it is then passed on as it is. */
export const isShared = (buffer: ArrayBufferLike): boolean =>
  buffer instanceof SharedArrayBuffer && !uses.has(buffer)

/** Whether called tasks may get the memory itself: no task writes it, or all see what is written. */
export const isCommon = (buffer: ArrayBufferLike): boolean =>
  buffer instanceof SharedArrayBuffer && uses.get(buffer) !== 'writer'

/** Whether others read it as well. */
export const isReaders = (buffer: ArrayBufferLike): boolean => uses.get(buffer) === 'reader'
