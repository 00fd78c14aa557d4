import { BUILT_IN, hasHidden, hasPrivateFields } from '../capture/looks.ts'
import { OWN_ERRORS } from '../errors.ts'
import { Future } from '../future.ts'
import { Stream } from '../value-stream.ts'

/** Where a class can be found by another thread: the module and the name of the export. */
export interface ClassName {
  readonly module: string
  readonly name: string
}

export interface ClassNames {
  nameOf(constructor: Function): ClassName | null
}

/** Why an instance cannot be encoded. */
export interface Refusal {
  readonly what: string
  readonly hint?: string
}

/** The class by which other threads know an instance; or why they would not get the same instance. */
export function instanceClass(
  value: object,
  prototype: object,
  classes: ClassNames | null,
): ClassName | Refusal {
  if (value instanceof Promise) return { what: 'a promise', hint: 'Await it, and pass what it gives.' }
  if (value instanceof Future || value instanceof Stream) {
    const what = value instanceof Future ? 'future' : 'stream'
    return { what: `the ${what} of a task, not what the task makes`, hint: 'Await it first.' }
  }
  const { constructor } = prototype
  const found = typeof constructor === 'function' ? (classes?.nameOf(constructor) ?? null) : null
  if (!found || constructor.prototype !== prototype) {
    const name =
      typeof constructor === 'function'
        ? constructor.name || 'an anonymous class'
        : 'something without a class'
    return { what: `an instance of ${name}, which no task module exports` }
  }
  const instance = `an instance of ${found.name}`
  if (hasPrivateFields(constructor)) {
    return { what: `${instance}, which has private #fields that cannot be read` }
  }
  if (BUILT_IN.some(type => value instanceof type)) {
    return { what: `${instance}, which extends a built-in class` }
  }
  if (hasHidden(value)) {
    return {
      what: `${instance} with properties that are not enumerable, and so are not seen`,
      hint: 'Set them as ordinary properties.',
    }
  }
  return found
}

/** The class of an error, which may be one of Millrace; null where others do not know it, or something in it cannot be seen. */
export function errorClass(prototype: object, classes: ClassNames | null): ClassName | null {
  const { constructor } = prototype
  if (typeof constructor !== 'function' || constructor.prototype !== prototype) return null
  const own = OWN_ERRORS.find(type => type === constructor)
  if (own) return { module: '', name: own.name }
  const found = classes?.nameOf(constructor) ?? null
  return found && !hasPrivateFields(constructor) ? found : null
}
