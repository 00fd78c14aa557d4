import { Datum } from '../core/data.ts'
import { rejectNestedCycle } from '../core/nesting.ts'
import { MillraceError } from '../core/errors.ts'
import type { Group } from '../core/group.ts'
import type { Task } from '../core/task.ts'
import { demandOf, roundMemory, withSize } from '../core/demand.ts'
import type { ThreadMessage } from '../execute/lane-thread.ts'
import type { CallRequest, Question } from '../execute/protocol.ts'
import { argumentFromWire, keptFromWire } from '../execute/wire.ts'
import type { Slot } from '../model/call.ts'
import { findDefinition } from '../model/definition.ts'
import { Encoder } from '../model/encode.ts'
import type { ClassNames, EncodeHooks } from '../model/encode.ts'
import { Paths } from '../model/paths.ts'
import { NOTHING, Stored } from '../model/stored.ts'
import type { Kept } from '../model/stored.ts'
import { liveOf } from './job.ts'
import type { Runtime } from './runtime.ts'
import { StreamQuestions } from './stream-questions.ts'
import { createSession } from './session.ts'
import type { Session } from './session.ts'

type Message = Exclude<ThreadMessage, { type: 'published' | 'guarded' | 'given-back' | 'blocking' }>

const blob: EncodeHooks['blob'] = view => ({ buffer: view.buffer, offset: view.byteOffset })

/** Tasks that call tasks: what running tasks ask for, carried out here. */
export class Nested {
  readonly #runtime: Runtime
  readonly #streams: StreamQuestions

  constructor(runtime: Runtime) {
    this.#runtime = runtime
    this.#streams = new StreamQuestions(runtime)
  }

  receive(message: Message, task: Task | undefined, lane: number): void {
    // A task that is being stopped may still have been speaking.
    if (!task || task.state === 'stopping') return
    const session = this.#session(task)
    switch (message.type) {
      case 'call':
        return this.#call(message, session)
      case 'ask':
        return this.#ask(message.request, message.question, session, task, lane)
      case 'group':
        this.#runtime.openGroup(session, message.name, this.#group(session, message.parent))
        return
      case 'remove': {
        const datum = session.data?.get(message.id)
        if (datum) this.#runtime.engine.remove(datum, this.#runtime.now())
        return
      }
      case 'link':
        return this.#runtime.executor.releases.link(task, session, message.index, message.id)
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
    const live = liveOf(task)
    return (live.session ??= createSession(task, this.#runtime.engine.createGroup(task.name, task.group)))
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
        const { id, kind, mode, initial, path, inPlace, value, fresh, stream, named } = sent
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
        return { ...slot, ...(stream && { stream }), ...(named && { named }) }
      })
      const { cpus, memory, tags, io, storage } = request.demand
      this.#runtime.submit(
        { definition, given: [], args: request.args.map(argumentFromWire), slots },
        results,
        session,
        this.#group(session, request.group),
        storage?.size == null
          ? demandOf(cpus, memory, tags, io, storage)
          : withSize(
              demandOf(cpus, memory, tags, io, { ...storage, size: roundMemory(storage.size) }),
              storage.size,
            ),
        request.priority,
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
    const { threads } = this.#runtime.executor
    void this.#answer(question, session, task).then(
      kept => threads.answer(lane, request, true, kept as Stored, true),
      (error: unknown) => threads.answer(lane, request, false, this.#encode(error)),
    )
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
    const stored = kept instanceof Stored ? kept : this.#encode(kept === NOTHING ? undefined : kept)
    const go = (): void => this.#runtime.executor.threads.answer(lane, request, ok, stored, isMoved)
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
        return runtime.fetchKept(session.data?.get(question.id) as Datum)
      }
      case 'file': {
        const datum = runtime.paths.find(Paths.absolute(question.path))
        if (datum && session.task) rejectNestedCycle(session.task, 'waitOnFile', [{ datum, mode: 'in' }])
        return runtime.waitOnFile(question.path)
      }
      case 'barrier': {
        if (question.isEnd) runtime.channels.callerEnded(task)
        await runtime.idle(session.group)
        for (const error of session.refused.values()) throw error
        for (const failed of session.unhandled) throw runtime.handle(failed)
        await runtime.allRan(session.group)
        return NOTHING
      }
      case 'group-end': {
        const group = session.groups.get(question.name)
        if (group && question.failed) await runtime.abandonGroup(session, group, question.failed === 'told')
        else if (group) await runtime.closeGroup(session, group)
        return NOTHING
      }
      case 'cancel':
        await runtime.cancelGroup(session, question.name)
        return NOTHING
      case 'remove-file':
        await runtime.removeFile(question.path)
        return NOTHING
      case 'room':
      case 'take':
      case 'next':
        return this.#streams.answer(question, session, task)
      case 'committed':
        await runtime.executor.commitEarly(task, question)
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
