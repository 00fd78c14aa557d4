import { MillraceError } from '../core/errors.ts'
import type { Definition } from './definition.ts'
import type { Direction } from './options/directions.ts'
import type { CommonOptions, Defaults } from './options/options.ts'

/** What a task that is a method may give: its calls give futures, which are promises to the types. */
// oxlint-disable-next-line typescript/no-explicit-any -- any method that returns nothing or a promise
export type TaskMethod = (this: any, ...args: any[]) => void | PromiseLike<unknown>

export interface MethodOptions extends CommonOptions<readonly never[]> {
  /** What it does with the object that it is called on. @default INOUT */
  this?: 'IN' | 'INOUT' | 'COMMUTATIVE'
  /** One direction per parameter. @default IN for all */
  params?: readonly Direction[]
  defaults?: Defaults
}

/** What `task(options)` gives: a standard decorator of methods and static methods, and one of the older form of TypeScript. */
export interface TaskDecorator {
  <T extends TaskMethod>(method: T, context: ClassMethodDecoratorContext): T
  <T extends TaskMethod>(owner: object, name: string | symbol, descriptor: TypedPropertyDescriptor<T>): void
}

interface Class {
  readonly name: string
  readonly prototype: object
}

type Call = (args: readonly unknown[]) => unknown

/** Makes a task of a function whose first parameter is `this`, unless the method is static. */
export type MakeMethod = (
  name: string,
  options: MethodOptions,
  params: readonly Direction[] | null,
  run: Function,
  how: { readonly isStatic: boolean; readonly isOpen: boolean },
) => { definition: Definition; call: Call }

/** The functions that stand for methods that are tasks. */
const made = new WeakSet<Function>()

export function methodDecorator(options: MethodOptions, make: MakeMethod): TaskDecorator {
  const decorate = (method: unknown, context: unknown, descriptor?: PropertyDescriptor): unknown => {
    if (typeof context === 'string' || typeof context === 'symbol') {
      if (typeof descriptor?.value !== 'function') throw noMethod()
      const isStatic = typeof method === 'function'
      descriptor.value = standIn(descriptor.value as Function, context, isStatic, () => method, options, make)
      return descriptor
    }
    const { kind, name, static: isStatic, addInitializer } = (context ?? {}) as ClassMethodDecoratorContext
    if (kind !== 'method' || typeof method !== 'function') throw noMethod()
    let owner: unknown = null
    if (isStatic) {
      addInitializer?.(function noteOwner(this: unknown) {
        // oxlint-disable-next-line typescript/no-this-alias -- the class is known here only
        owner = this
      })
    }
    return standIn(method, name, isStatic, () => owner, options, make)
  }
  return decorate as TaskDecorator
}

/**
 * Makes tasks of methods and static methods of a class, by their names, where decorators cannot be used:
 *
 *     export class Block { … }
 *     taskMethods(Block, { multiply: { params: [IN, IN] }, norm: { this: IN } })
 */
export function makeMethods(
  owner: Class,
  methods: Readonly<Record<string, MethodOptions>>,
  make: MakeMethod,
): void {
  if (typeof (owner as unknown) !== 'function') {
    throw new MillraceError('MR_OPTION', `taskMethods needs a class, and got ${typeof owner}`)
  }
  for (const [name, options] of Object.entries(methods)) {
    const isStatic = !Object.hasOwn(owner.prototype, name)
    const place = isStatic ? owner : owner.prototype
    const method: unknown = Object.getOwnPropertyDescriptor(place, name)?.value
    if (typeof method !== 'function' || made.has(method)) {
      const what = typeof method === 'function' ? 'is a task already' : 'has no method of this name'
      throw new MillraceError('MR_OPTION', `taskMethods: ${owner.name}.${name}: the class ${what}`)
    }
    const value = standIn(method, name, isStatic, () => owner, options, make)
    Object.defineProperty(place, name, { value, writable: true, configurable: true })
  }
}

/** What is called in the place of the method. */
function standIn(
  method: Function,
  key: string | symbol,
  isStatic: boolean,
  owner: () => unknown,
  options: MethodOptions,
  make: MakeMethod,
): Function {
  const { this: direction = 'INOUT', params, ...others } = options
  if (!['IN', 'INOUT', 'COMMUTATIVE'].includes(direction)) {
    throw new MillraceError('MR_DIRECTION', `method ${String(key)}: this cannot be ${String(direction)}`, {
      hint: 'It is IN, INOUT or COMMUTATIVE.',
    })
  }
  const run = runOf(method, isStatic, owner)
  const directions = isStatic ? (params ?? null) : [direction, ...(params ?? [])]
  const { definition, call } = make(options.name ?? String(key), others, directions, run, {
    isStatic,
    isOpen: params === undefined,
  })
  let isNamed = options.name !== undefined
  function stand(this: unknown, ...args: unknown[]): unknown {
    if (!isNamed) {
      isNamed = true
      definition.name = `${nameOfOwner(this, stand)}${definition.name}`
    }
    return call(isStatic ? args : [this, ...args])
  }
  Object.defineProperty(stand, 'name', { value: method.name })
  made.add(stand)
  return stand
}

/** Threads know by the form of a function whether it goes on later. */
function runOf(method: Function, isStatic: boolean, owner: () => unknown): Function {
  const isAsync = method.constructor.name === 'AsyncFunction'
  if (isStatic) {
    return isAsync
      ? async (...args: unknown[]) => method.apply(owner(), args) as unknown
      : (...args: unknown[]) => method.apply(owner(), args) as unknown
  }
  return isAsync
    ? async (self: unknown, ...args: unknown[]) => method.apply(self, args) as unknown
    : (self: unknown, ...args: unknown[]) => method.apply(self, args) as unknown
}

/** `Block.`: the class that has the method, which may be above that of the object. */
function nameOfOwner(self: unknown, stand: Function): string {
  if (typeof self === 'function') return `${self.name}.`
  for (let at: unknown = self; at !== null && at !== undefined; at = Object.getPrototypeOf(at)) {
    if (Object.values(Object.getOwnPropertyDescriptors(at)).some(({ value }) => value === stand)) {
      return `${(at as { constructor: Function }).constructor.name}.`
    }
  }
  return ''
}

const noMethod = (): MillraceError =>
  new MillraceError('MR_OPTION', 'task: the second argument is missing, and what is decorated is no method', {
    hint: 'Write task({}, function), or @task({}) before a method of an exported class.',
  })
