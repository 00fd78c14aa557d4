import { MillraceError } from '../core/errors.ts'
import { openAlready } from '../core/tasks/group.ts'
import type { Group } from '../core/tasks/group.ts'
import { nearest } from '../general/nearest.ts'
import { cancelledError } from './failure.ts'
import type { Runtime } from './runtime.ts'
import type { Session } from './session.ts'
import { turn } from './turn.ts'

/** What it uses of the runtime. */
type Uses = Pick<Runtime, 'engine' | 'handle' | 'idle' | 'lineage' | 'now' | 'schedule'>

/** The groups of tasks that the program, or a running task, has opened. */
export class Groups {
  readonly #runtime: Uses

  constructor(runtime: Uses) {
    this.#runtime = runtime
  }

  open(session: Session, name: string, parent: Group): Group {
    if (session.groups.has(name)) throw openAlready(name)
    const group = this.#runtime.engine.createGroup(name, parent)
    session.groups.set(name, group)
    return group
  }

  /** The barrier of a group: throws its failure. */
  async close(session: Session, group: Group): Promise<void> {
    await this.#runtime.idle(group)
    session.groups.delete(group.name)
    this.#runtime.engine.closeGroup(group)
    if (group.failure) throw this.#runtime.handle(group.failure)
    await this.allRan(group)
    await this.#runtime.lineage.bringResults()
  }

  /** Throws if the run was closed and tasks never ran because of that: the caller must not go on as if they had. */
  async allRan({ missing }: Group): Promise<void> {
    if (!missing) return
    await turn()
    throw cancelledError(missing)
  }

  /** The body of a group failed: what is left of it is cancelled. `isTold`: with an error of ours, perhaps that of the group. */
  async abandon(session: Session, group: Group, isTold: boolean): Promise<void> {
    if (group.live > 0) {
      this.#runtime.engine.cancel(
        group,
        { kind: 'group', group: group.name, how: 'failed' },
        this.#runtime.now(),
      )
      this.#runtime.schedule()
      await this.#runtime.idle(group)
    }
    session.groups.delete(group.name)
    this.#runtime.engine.closeGroup(group)
    if (group.failure && isTold) this.#runtime.handle(group.failure)
  }

  async cancel(session: Session, name: string): Promise<void> {
    const group = session.groups.get(name)
    if (!group) {
      const close = nearest(name, session.groups.keys())
      throw new MillraceError(
        'MR_GROUP',
        `no group is called '${name}'${close ? `; did you mean '${close}'?` : ''}`,
        {
          hint: 'A group can be cancelled from its call until its barrier.',
        },
      )
    }
    this.#runtime.engine.cancel(group, { kind: 'group', group: name, how: 'cancelled' }, this.#runtime.now())
    this.#runtime.schedule()
    await this.#runtime.idle(group)
  }
}
