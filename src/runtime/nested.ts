import { Datum } from '../core/data/datum.ts'
import { rejectNestedCycle } from '../core/data/nesting.ts'
import { MillraceError } from '../core/errors.ts'
import type { Group } from '../core/tasks/group.ts'
import type { Task } from '../core/tasks/task.ts'
import { demandOf, roundMemory, withSize } from '../core/tasks/demand.ts'
import type { TaskMessage } from '../node/node.ts'
import type { CallRequest, Question } from '../node/threads/protocol.ts'
import { argumentFromWire, keptFromWire } from '../node/threads/wire.ts'
import type { Slot } from '../model/capture/call.ts'
import { findDefinition } from '../model/definition.ts'
import { Encoder } from '../model/encoding/encode.ts'
import type { EncodeHooks } from '../model/encoding/encode.ts'
import type { ClassNames } from '../model/encoding/instance-class.ts'
import { Paths } from '../model/capture/paths.ts'
import { NOTHING, Stored } from '../model/encoding/stored.ts'
import type { Kept } from '../model/encoding/stored.ts'
import type { Runtime } from './runtime.ts'
import { StreamQuestions } from './stream-questions.ts'
import { spoil } from './resume/keeping.ts'
import { createSession } from './session.ts'
import type { Session } from './session.ts'

/** What it uses of the runtime. */
type Uses = Pick<
  Runtime,
  | 'hasAgents'
  | 'channels'
  | 'engine'
  | 'files'
  | 'groups'
  | 'handle'
  | 'idle'
  | 'modules'
  | 'nodes'
  | 'now'
  | 'paths'
  | 'releases'
  | 'removeFile'
  | 'schedule'
  | 'settled'
  | 'submit'
  | 'values'
  | 'waitOnFile'
>

const blob: EncodeHooks['blob'] = view => ({ buffer: view.buffer, offset: view.byteOffset })

/** Tasks that call tasks: what running tasks ask for, carried out here. */
export class Nested {
  readonly #runtime: Uses
  readonly #streams: StreamQuestions
  /** Of attempts that have called tasks, or asked for something. */
  readonly #sessions = new Map<Task, Session>()

  constructor(runtime: Uses) {
    this.#runtime = runtime
    this.#streams = new StreamQuestions(runtime)
  }

  receive(message: TaskMessage, task: Task, lane: number): void {
    // A task that is being stopped may still have been speaking.
    if (task.state === 'stopping') return
    const session = this.#session(task)
    switch (message.type) {
      case 'call':
        return this.#call(message, session)
      case 'ask':
        return this.#ask(message.request, message.question, session, task, lane)
      case 'group':
        this.#runtime.groups.open(session, message.name, this.#group(session, message.parent))
        return
      case 'remove': {
        const datum = session.data?.get(message.id)
        if (datum) this.#runtime.engine.remove(datum, this.#runtime.now())
        return
      }
      case 'link':
        return this.#runtime.releases.link(task, session, message.index, message.id)
      case 'close-stream':
        return this.#streams.close(session, message)
      case 'forget':
        session.data?.delete(message.id)
        return
      case 'log':
        return
    }
  }

  #session(task: Task): Session {
    const known = this.#sessions.get(task)
    if (known) return known
    const session = createSession(task, this.#runtime.engine.createGroup(task.name, task.group))
    this.#sessions.set(task, session)
    return session
  }

  /** The task has its lane back: the answers that it waited for may go. */
  resume(task: Task): void {
    const session = this.#sessions.get(task)
    const answers = session?.answers ?? []
    if (session) session.answers = []
    for (const answer of answers) answer()
  }

  /** It has called tasks, or asked for something. */
  isCaller(task: Task): boolean {
    return this.#sessions.has(task)
  }

  /** A task that ends takes with it what it called. */
  cancelCalled(task: Task): void {
    const session = this.#sessions.size > 0 ? this.#sessions.get(task) : undefined
    if (!session || session.group.live === 0) return
    this.#runtime.engine.cancel(
      session.group,
      { kind: 'caller-ended', caller: task.name },
      this.#runtime.now(),
    )
    this.#runtime.schedule()
  }

  /** The attempt is over. */
  ended(task: Task): void {
    const session = this.#sessions.size > 0 ? this.#sessions.get(task) : undefined
    if (!session) return
    this.#sessions.delete(task)
    this.#runtime.engine.closeGroup(session.group)
  }

  #group(session: Session, name: string | null): Group {
    return (name === null ? undefined : session.groups.get(name)) ?? session.group
  }

  #call(request: CallRequest, session: Session): void {
    const { engine } = this.#runtime
    const results = request.results.map(id => this.#result(session, id))
    try {
      const definition = findDefinition(request.key)
      if (!definition) {
        throw new MillraceError(
          'MR_NOT_TOP_LEVEL',
          `task ${request.key.split('#').at(-2)} is not known to the coordinator`,
          {
            hint: 'Import its module in the program too, not only inside a task.',
          },
        )
      }
      const slots: Slot[] = request.slots.map(sent => {
        const { id, kind, mode, initial, path, inPlace, value, fresh, stream, named, hasParts, holds } = sent
        const datum =
          path === null
            ? this.#datum(session, id, null, inPlace)
            : this.#runtime.paths.datum(path, kind === 'directory')
        if (fresh) {
          const kept = keptFromWire(value)
          if (datum.current.value === undefined && datum.current.settled) datum.current.value = kept
          else engine.write(datum, kept, this.#runtime.now())
        }
        const slot = { datum, kind, mode, initial: initial ? new Stored(initial.bytes, initial.blobs) : null }
        return {
          ...slot,
          ...(stream && { stream }),
          ...(named && { named }),
          ...(hasParts && { hasParts }),
          ...(holds && { holds }),
        }
      })
      const { cpus, memory, tags, io, storage, gpus, spread } = request.demand
      this.#runtime.submit(
        {
          definition,
          given: [],
          args: request.args.map(argumentFromWire),
          slots,
          ...(request.extraKey === undefined ? {} : { key: request.extraKey }),
        },
        results,
        session,
        this.#group(session, request.group),
        {
          demand:
            storage?.size == null
              ? demandOf(cpus, memory, tags, io, storage, gpus, spread)
              : withSize(
                  demandOf(cpus, memory, tags, io, { ...storage, size: roundMemory(storage.size) }, gpus),
                  storage.size,
                ),
          priority: request.priority,
          label: request.label,
        },
      )
    } catch (error) {
      for (const id of request.results) session.refused.set(id, error)
    }
    this.#runtime.schedule()
  }

  #result(session: Session, id: number): Datum {
    const datum = new Datum(null, false, false)
    session.data?.set(id, datum)
    return datum
  }

  #datum(session: Session, id: number, path: string | null, inPlace: boolean): Datum {
    const known = session.data?.get(id)
    if (known) return known
    const datum = new Datum(path, inPlace)
    session.data?.set(id, datum)
    return datum
  }

  #ask(request: number, question: Question, session: Session, task: Task, lane: number): void {
    const { engine } = this.#runtime
    if (question.ask === 'take' && question.isThere)
      return this.#answerAtOnce(request, question, session, task, lane)
    if (session.open++ === 0) engine.blocked(task, reasonFor(question), this.#runtime.now())
    this.#runtime.schedule()
    this.#answer(question, session, task)
      .then(
        kept => this.#send(session, task, lane, request, true, kept, question.ask === 'take'),
        (error: unknown) => this.#send(session, task, lane, request, false, this.#encode(error), false),
      )
      .catch(() => undefined)
  }

  #answerAtOnce(request: number, question: Question, session: Session, task: Task, lane: number): void {
    const node = this.#runtime.nodes.of(task)
    const send = (ok: boolean, kept: Stored, isMoved = false): void => {
      if (this.#isCurrent(session, task)) node.answer(lane, request, ok, kept, isMoved)
    }
    void this.#answer(question, session, task).then(
      kept => send(true, kept as Stored, true),
      (error: unknown) => send(false, this.#encode(error)),
    )
  }

  /** Each attempt counts its questions from 1: the answer to one that is over would be taken for one of the next. */
  #isCurrent(session: Session, task: Task): boolean {
    return this.#sessions.get(task) === session
  }

  /** The last open answer goes out when the task has its lane back; the others do not make it run on. */
  #send(
    session: Session,
    task: Task,
    lane: number,
    request: number,
    ok: boolean,
    kept: Kept,
    isMoved: boolean,
  ): void {
    if (!this.#isCurrent(session, task)) return
    const stored = kept instanceof Stored ? kept : this.#encode(kept === NOTHING ? undefined : kept)
    const node = this.#runtime.nodes.of(task)
    const go = (): void => node.answer(lane, request, ok, stored, isMoved)
    if (--session.open > 0 || task.state !== 'blocked') return go()
    session.answers.push(go)
    this.#runtime.engine.unblocked(task)
    this.#runtime.schedule()
  }

  #encode(value: unknown): Stored {
    return encode(value, this.#runtime.modules)
  }

  async #answer(question: Question, session: Session, task: Task): Promise<Kept> {
    const runtime = this.#runtime
    switch (question.ask) {
      case 'value': {
        if (session.refused.has(question.id)) {
          const error = session.refused.get(question.id)
          session.refused.delete(question.id)
          throw error
        }
        return runtime.values.fetchKept(session.data?.get(question.id) as Datum)
      }
      case 'file': {
        const datum = runtime.paths.find(Paths.absolute(question.path))
        if (datum && session.task) rejectNestedCycle(session.task, 'waitOnFile', [{ datum, mode: 'in' }])
        return runtime.nodes.of(task).bringFile(await runtime.waitOnFile(question.path))
      }
      case 'barrier': {
        if (question.isEnd) runtime.channels.callerEnded(task)
        await runtime.idle(session.group)
        for (const error of session.refused.values()) throw error
        for (const failed of session.unhandled) throw runtime.handle(failed)
        await runtime.groups.allRan(session.group)
        return NOTHING
      }
      case 'group-end': {
        const group = session.groups.get(question.name)
        if (group && question.failed) await runtime.groups.abandon(session, group, question.failed === 'told')
        else if (group) await runtime.groups.close(session, group)
        return NOTHING
      }
      case 'cancel':
        await runtime.groups.cancel(session, question.name)
        return NOTHING
      case 'remove-file':
        spoil(task, 'it removes files')
        await runtime.removeFile(question.path)
        return NOTHING
      case 'room':
      case 'take':
      case 'next':
        return this.#streams.answer(question, session, task)
      case 'committed':
        await runtime.files.early.commit(task, question)
        return NOTHING
    }
  }
}

function encode(value: unknown, classes: ClassNames): Stored {
  const encoder = new Encoder()
  encoder.value(value, { classes, lenient: true, blob })
  return new Stored(encoder.copy(), encoder.blobs)
}

function reasonFor(question: Question): string {
  switch (question.ask) {
    case 'value':
      return 'it waits for a value'
    case 'file':
      return `it waits for ${question.path}`
    case 'barrier':
      return 'it waits for the tasks that it called'
    case 'group-end':
      return `it waits for group ${question.name}`
    case 'cancel':
      return `it cancels group ${question.name}`
    case 'remove-file':
      return `it removes ${question.path}`
    case 'room':
      return 'its values wait to be taken'
    case 'take':
    case 'next':
      return 'it waits for the next value of a stream'
    case 'committed':
      return `it releases ${question.path}`
  }
}
