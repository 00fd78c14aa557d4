import { MillraceError } from '../core/errors.ts'
import type { Observer, RunEvent, RunEventType } from '../core/events.ts'
import { messageOf } from '../general/thrown.ts'

/** A function for each type of event that is of interest. */
export type EventHandlers = {
  readonly [Type in RunEventType]?: (event: Extract<RunEvent, { type: Type }>) => void
}

/** The program's observers. An observer that throws is dropped and reported: it must not end the run. */
export class ProgramObservers {
  #all: readonly Observer[]
  readonly #warn: (text: string) => void

  constructor(observers: readonly (Observer | EventHandlers)[], warn: (text: string) => void) {
    this.#all = observers.map(observerOf)
    this.#warn = warn
  }

  get any(): boolean {
    return this.#all.length > 0
  }

  readonly observe: Observer = event => {
    for (const observer of this.#all) this.#tell(observer, event)
  }

  /** An observer that joins late gets the snapshot first. Returns what ends it. */
  add(given: Observer | EventHandlers, snapshot: readonly RunEvent[]): () => void {
    const observer = observerOf(given)
    this.#all = [...this.#all, observer]
    for (const event of snapshot) if (this.#all.includes(observer)) this.#tell(observer, event)
    return () => this.#drop(observer)
  }

  #tell(observer: Observer, event: RunEvent): void {
    try {
      observer(event)
    } catch (error) {
      this.#drop(observer)
      this.#warn(`an observer failed at an event '${event.type}' and gets no more: ${messageOf(error)}`)
    }
  }

  #drop(observer: Observer): void {
    this.#all = this.#all.filter(one => one !== observer)
  }
}

/** A run that goes on, or will begin with the first task. */
interface Observable {
  observe(observer: Observer | EventHandlers): () => void
}

let current: Observable | null = null

export function setObservable(run: Observable): void {
  current = run
}

/**
 * Adds an observer while the run goes on. It gets first the events that lead to the tasks which have not ended, then all that
 * happens. Returns a function that ends it. In tasks and in simulated runs nothing is observed.
 */
export function observe(observer: Observer | EventHandlers): () => void {
  checkObservers([observer])
  return current?.observe(observer) ?? ((): void => undefined)
}

function observerOf(observer: Observer | EventHandlers): Observer {
  if (typeof observer === 'function') return observer
  return event => (observer[event.type] as Observer | undefined)?.(event)
}

export function checkObservers(given: unknown): void {
  const isRight = (one: unknown): boolean =>
    typeof one === 'function' || (typeof one === 'object' && one !== null)
  if (given === undefined || (Array.isArray(given) && given.every(isRight))) return
  throw new MillraceError('MR_OPTION', 'observers is not a list of functions or of objects with handlers', {
    hint: 'Write configure({ observers: [event => …, { failed: event => … }] }).',
  })
}
