import type { Location } from './location.ts'
import type { Going } from './mover.ts'

/** A version that is on its way to its place, with time: a task that cannot wait for it does not copy it once more. */
export interface Arrival {
  readonly done: Promise<boolean>
  hurry(): void
}

export async function beginArrival(
  location: Location,
  isWanted: () => boolean,
  bring: (going: Going) => Promise<boolean>,
): Promise<boolean> {
  let isUrgent = false
  const done = bring({ isWanted, isUrgent: () => isUrgent })
  location.arrival = { done, hurry: () => (isUrgent = true) }
  return done.finally(() => (location.arrival = null))
}

/** Lets it come at full speed; false if it was not on its way, or did not get there. */
export async function hurryArrival({ arrival }: Location): Promise<boolean> {
  arrival?.hurry()
  return (await arrival?.done.catch(() => false)) ?? false
}
