import type { Datum, Version } from '../../core/data/datum.ts'
import type { Engine } from '../../core/engine.ts'
import type { Task } from '../../core/tasks/task.ts'
import { FileStore } from '../../storage/file-store.ts'
import { Location } from '../../storage/location.ts'
import { Devices } from '../io/devices.ts'
import type { NodeEvents, NodeHost } from '../node.ts'
import type { Watchdog } from '../processes/watchdog.ts'
import { Deletions } from './deletions.ts'
import { EarlyFiles } from './early-files.ts'
import { Streaming } from './streaming.ts'
import { TaskFiles } from './task-files.ts'

export interface FileParts {
  readonly run: string
  readonly engine: Engine
  readonly watchdog: Watchdog
  readonly host: NodeHost
  readonly events: Pick<NodeEvents, 'committed' | 'flows' | 'note' | 'changed'>
  /** Ends the program of a task that has lost its input. */
  abort(task: Task): void
}

/** The files of a run: their versions, where tasks read and write them, and the devices that they lie on. */
export class NodeFiles {
  readonly store: FileStore
  readonly tasks: TaskFiles
  readonly deletions: Deletions
  readonly devices: Devices
  readonly early: EarlyFiles
  readonly streaming: Streaming
  readonly #events: FileParts['events']

  constructor({ run, engine, watchdog, host, events, abort }: FileParts) {
    this.#events = events
    this.store = new FileStore(run, folder => watchdog.folder(folder))
    if (engine.observer) {
      this.store.found = ({ id }, bytes) => {
        engine.observer?.({ type: 'found', at: host.now(), version: id, bytes })
      }
    }
    this.early = new EarlyFiles(this.store, (task, version) => events.committed(task, version))
    this.streaming = new Streaming(run, {
      files: this.store,
      host,
      events,
      announce: folder => watchdog.folder(folder),
      stop: abort,
      tell: engine.observer ? facts => engine.observer?.({ type: 'stream', at: host.now(), ...facts }) : null,
    })
    this.tasks = new TaskFiles(this.store, host, this.streaming, this.early, text =>
      events.note('warning', text),
    )
    const changed = (): void => events.changed()
    this.deletions = new Deletions(
      this.tasks,
      version => {
        engine.io.gone(version)
        if (version.datum.temporary)
          engine.observer?.({ type: 'removed', at: host.now(), version: version.id })
        changed()
      },
      version => {
        engine.io.stays(version)
        changed()
      },
    )
    this.devices = new Devices(engine, this.store, () => host.now(), changed)
  }

  /** The version is obsolete and no task reads it. */
  discard(version: Version): void {
    if (version.value instanceof Location) this.deletions.begin(version)
    else version.value = undefined
  }

  /** Returns the files that could not be brought to their places, and where they are. */
  async end(data: Iterable<Datum>): ReturnType<FileStore['end']> {
    await this.streaming.end()
    await this.devices.end()
    const stranded = await this.store.end(data, text => this.#events.note('warning', text))
    this.devices.emptied(stranded.map(({ version }) => version))
    return stranded
  }

  endNow(): void {
    this.streaming.endNow()
    this.store.endNow()
  }
}
