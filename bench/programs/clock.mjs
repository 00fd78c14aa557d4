/** Milliseconds on a clock that all threads of the machine have in common. */
export const clock = () => Number(process.hrtime.bigint()) / 1e6

export const LENGTH = 12_500_000

/** Touches each page, so that the memory really exists, and leaves marks that a reader can check. */
export function fill(array, mark) {
  for (let i = 0; i < array.length; i += 512) array[i] = mark
  array[array.length - 1] = mark
}

export function check(array, mark) {
  if (array.length !== LENGTH || array[0] !== mark || array[LENGTH - 1] !== mark) {
    throw new Error('the array did not arrive as it was written')
  }
}
