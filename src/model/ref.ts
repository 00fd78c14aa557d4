/** A box for a value that is no object, so that tasks can write it. */
export interface Ref<T> {
  value: T
}

/**
 * A number or text that tasks read and write (INOUT, OUT, COMMUTATIVE): they get the box and set its `value`.
 *
 *     const count = ref(0)
 *     increase(count)
 *     console.log((await waitOn(count)).value)
 */
export const ref = <T>(value: T): Ref<T> => ({ value })
