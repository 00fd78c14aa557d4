/** Adds all of them to the end; as arguments of `push`, a hundred thousand would not fit on the stack. */
export function append<T>(list: T[], more: Iterable<T>): void {
  for (const one of more) list.push(one)
}
