import { shared } from 'millrace'
import { OPEN, REACHED } from '../fixtures/tasks.ts'
import type { Gate } from '../fixtures/tasks.ts'
import { until } from './embedded.ts'

/** A place where a task stops until the test lets it go on. */
export const newGate = (): Gate => shared(Int32Array, 3)

export function open(gate: Gate): void {
  Atomics.store(gate, OPEN, 1)
  Atomics.notify(gate, OPEN)
}

export const reached = (gate: Gate, times = 1): Promise<void> =>
  until(() => Atomics.load(gate, REACHED) >= times, 'a task at the gate')
