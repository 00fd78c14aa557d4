import type { RunEvent } from '../../core/events.ts'

/** Passes events on, and remembers whether they are of a simulated run. */
export class SimulatedEvents implements AsyncIterable<RunEvent> {
  readonly #events: AsyncIterable<RunEvent>
  #isSimulated = false

  constructor(events: AsyncIterable<RunEvent>) {
    this.#events = events
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<RunEvent> {
    for await (const event of this.#events) {
      if (event.type === 'run-started') this.#isSimulated = event.simulated
      yield event
    }
  }

  /** What is to be said first, when all events have passed. */
  get heading(): string[] {
    return this.#isSimulated ? ['This run was simulated.'] : []
  }
}
