import { messageOf } from '../../general/thrown.ts'
import { isMainThread } from 'node:worker_threads'
import { MillraceError } from '../../core/errors.ts'
import { findDefinition, modulePath } from '../../model/definition.ts'
import type { Definition } from '../../model/definition.ts'
import { loadModule } from '../../model/load-module.ts'
import { DEFINITION } from '../../model/task.ts'

/** Loads the modules that define tasks, and knows the classes that they export. */
export class TaskModules {
  readonly #namespaces = new Map<string, Record<string, unknown>>()
  readonly #loading = new Map<string, Promise<void>>()
  readonly #names = new Map<Function, { module: string; name: string }>()
  #typescript = false

  /** Makes `.ts` modules loadable in this thread; Node 20 does not hand the program's loader down to threads. */
  async enableTypescript(): Promise<void> {
    if (this.#typescript) return
    this.#typescript = true
    const [esm, cjs] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')])
    cjs.register()
    esm.register()
  }

  load(module: string): Promise<void> {
    let loading = this.#loading.get(module)
    if (!loading) this.#loading.set(module, (loading = this.#load(module)))
    return loading
  }

  /** The definition, after loading its module and, if it is not there, the program's. */
  async find(key: string, module: string, entry: string | null): Promise<Definition> {
    await this.load(module)
    let definition = findDefinition(key)
    if (!definition && entry && entry !== module) {
      await this.load(entry)
      definition = findDefinition(key)
    }
    if (definition) return definition
    const name = key.split('#').at(-2) ?? key
    throw new MillraceError(
      'MR_NOT_TOP_LEVEL',
      `task ${name} is not defined at the top level of ${modulePath(module)}, so compute threads cannot find it`,
      { hint: 'Move its definition out of main() or the function it is in, to the top level of the module.' },
    )
  }

  nameOf(constructor: Function): { module: string; name: string } | null {
    return this.#names.get(constructor) ?? null
  }

  findClass(module: string, name: string): Function | null {
    const found = this.#namespaces.get(module)?.[name]
    return typeof found === 'function' ? found : null
  }

  has(module: string): boolean {
    return this.#namespaces.has(module)
  }

  async #load(module: string): Promise<void> {
    try {
      const namespace = await loadModule(module)
      // A CommonJS module has its exports under `default`.
      const exported = { ...(namespace['default'] as object | undefined), ...namespace }
      this.#namespaces.set(module, exported)
      for (const [name, value] of Object.entries(exported)) {
        const definition = (value as { [DEFINITION]?: Definition } | null | undefined)?.[DEFINITION]
        if (definition?.unnamed) {
          definition.name = name
          // Calls that came before the module was loaded are called so from now on.
          if (definition.kind) Object.assign(definition.kind, { name })
        }
        if (typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value))) {
          this.#names.set(value, { module, name })
        }
      }
    } catch (error) {
      if (error instanceof MillraceError) throw error
      const where = isMainThread ? 'the coordinator' : 'a compute thread'
      const reason = messageOf(error)
      throw new MillraceError(
        'MR_MODULE',
        `${modulePath(module)} could not be loaded by ${where}: ${reason}`,
        {
          cause: error,
        },
      )
    }
  }
}
