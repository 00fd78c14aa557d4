import { FORMS } from '../core/tasks/form.ts'
import type { Engine } from '../core/engine.ts'
import { Implementation } from '../core/tasks/task.ts'
import type { Kind } from '../core/tasks/task.ts'
import type { Definition } from '../model/definition.ts'
import { addVariants } from '../model/options/demand.ts'

/** The core's view of definitions. */
export class Kinds {
  readonly #engine: Engine
  readonly #now: () => number
  #last = 0

  constructor(engine: Engine, now: () => number) {
    this.#engine = engine
    this.#now = now
  }

  of(definition: Definition): Kind {
    let { kind } = definition
    if (!kind) {
      kind = {
        id: ++this.#last,
        name: definition.name,
        form: definition.form,
        module: definition.module,
        implementations: [new Implementation(definition.name)],
        endsThreads: false,
        isMoldable: FORMS[definition.form].runsOn === 'ranks',
      }
      definition.kind = kind
      this.#engine.observer?.({
        type: 'kind-defined',
        at: this.#now(),
        kind: kind.id,
        name: kind.name,
        form: kind.form,
        module: kind.module,
      })
    }
    addVariants(kind, definition)
    return kind
  }
}
