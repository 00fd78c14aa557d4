import { STEPS, hadNotBegun } from '../../core/events.ts'
import type { AttemptSteps, RunEvent, TaskUsage } from '../../core/events.ts'
import { formatBytes, formatDuration, plural } from '../format.ts'
import type { StoryWorld } from './story-world.ts'
import { clean } from '../text.ts'

export type TaskEvent = Extract<RunEvent, { task: number }>
/** What a story asks of the run around its task. */
export type World = Pick<
  StoryWorld,
  'hasNodes' | 'runEndedAt' | 'nodeName' | 'deviceName' | 'nameOf' | 'makersOf' | 'madeAt' | 'bytesOf'
>
type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

const MAX_VERSIONS = 10

/** The sentences of one task, from its events in order. */
export function tell(events: TaskEvent[], world: World): string[] {
  return new StoryWriter(world).tell(events)
}

class StoryWriter {
  readonly #world: World
  readonly #lines: string[] = []
  #submitted: Of<'submitted'> | null = null
  /** Since when it waits for a lane. */
  #queuedAt: number | null = null
  #startedAt: number | null = null
  #blockedAt: number | null = null
  #released = 0

  constructor(world: World) {
    this.#world = world
  }

  tell(events: TaskEvent[]): string[] {
    for (const event of events) this.#event(event)
    const last = events.at(-1)
    const isOver =
      last?.type === 'finished' ||
      last?.type === 'kept' ||
      last?.type === 'cancelled' ||
      (last?.type === 'failed' && last.next !== 'retry')
    if (!isOver) {
      const end = this.#world.runEndedAt
      this.#lines.push(end === null ? 'Here the journal ends.' : `${time(end)}: the run ended before it did.`)
    }
    return this.#lines
  }

  #event(event: TaskEvent): void {
    switch (event.type) {
      case 'submitted':
        return this.#submit(event)
      case 'arguments':
        return this.#say(event, `was called with ${clean(event.text)}`)
      case 'ready':
        return this.#ready(event)
      case 'started':
        return this.#start(event)
      case 'blocked':
        this.#blockedAt = event.at
        return this.#say(event, `gave its lane back: ${clean(event.reason)}`)
      case 'resumed': {
        const waited = since(this.#blockedAt, event.at)
        const place = `lane ${event.lane} of ${this.#world.nodeName(event.node)}`
        return this.#say(event, `went on, on ${place}${waited === null ? '' : `, ${waited} later`}`)
      }
      case 'finished': {
        const more = this.#released - MAX_VERSIONS
        if (more > 0) this.#say(event, `released ${plural(more, 'more version')} by then`)
        if (event.kept) return this.#say(event, 'made nothing: the files in place are right')
        this.#say(event, `finished${this.#ran(event)}${usageText(event.usage)}`)
        if (event.steps) this.#lines.push(`  ${stepsText(event.steps)}`)
        return this.#made()
      }
      case 'kept':
        this.#say(event, 'was not run: its results were kept by an earlier run')
        return this.#made()
      case 'released':
        this.#released++
        if (this.#released <= MAX_VERSIONS) this.#say(event, `released ${this.#version(event.version)} early`)
        return
      case 'failed':
        return this.#fail(event)
      case 'cancelled': {
        const cause = event.cause === null ? '' : `, because of ${this.#world.nameOf(event.cause)}`
        return this.#say(event, `was cancelled${cause}: ${clean(event.reason)}`)
      }
      case 'waits':
        return this.#say(event, `could not start: ${clean(event.reason)}`)
      case 'returned':
        this.#queuedAt = event.at
        return this.#say(
          event,
          `${hadNotBegun(event) ? '' : 'lost its thread and '}waits to start again: ${clean(event.reason)}`,
        )
    }
  }

  #submit(event: Of<'submitted'>): void {
    this.#submitted = event
    const caller = event.parent === null ? 'the main program' : this.#world.nameOf(event.parent)
    const group = event.group === null ? '' : `, in group ${clean(event.group)}`
    const priority = event.priority === 0 ? '' : `, with priority ${event.priority}`
    this.#say(event, `${this.#world.nameOf(event.task)} was submitted by ${caller}${group}${priority}`)
    const made = [...new Set(event.reads)].filter(version => this.#world.makersOf(version).length > 0)
    for (const version of made.slice(0, MAX_VERSIONS)) this.#lines.push(`  ${this.#input(version, event)}`)
    if (made.length > MAX_VERSIONS)
      this.#lines.push(`  and for ${plural(made.length - MAX_VERSIONS, 'more version')}`)
  }

  #input(version: number, event: Of<'submitted'>): string {
    const makers = this.#world.makersOf(version).map(maker => this.#world.nameOf(maker))
    const shown = makers.slice(0, 3).join(', ') + (makers.length > 3 ? ` and ${makers.length - 3} more` : '')
    const madeAt = this.#world.madeAt(version)
    if (madeAt !== null && madeAt <= event.at)
      return `it reads ${this.#version(version)} of ${shown}, which was there`
    const end = madeAt === null ? 'which never came' : `which came after ${formatDuration(madeAt - event.at)}`
    return `it waited for ${this.#version(version)} of ${shown}, ${end}`
  }

  #ready(event: Of<'ready'>): void {
    this.#queuedAt = event.at
    const waited = since(this.#submitted?.at ?? null, event.at)
    const later = waited === null || waited === '0ms' ? '' : `, ${waited} after it was submitted`
    this.#say(event, `had all its inputs${later}`)
  }

  #start(event: Of<'started'>): void {
    const waited = since(this.#queuedAt, event.at)
    this.#startedAt = event.at
    const again = event.attempt > 1 ? ` again, attempt ${event.attempt},` : ''
    const isIo = event.cpus === 0
    const device = event.device === undefined ? null : clean(this.#world.deviceName(event.device))
    const lane = `on lane ${event.lane} of ${this.#world.nodeName(event.node)} with ${plural(event.cpus, 'cpu')}`
    const apart = this.#world.hasNodes ? ` on ${this.#world.nodeName(event.node)}` : ''
    const place = isIo ? `without a CPU${apart}` : lane
    const files = device === null ? '' : isIo ? `, on ${device}` : `, with its files on ${device}`
    const form = event.implementation === undefined ? '' : `, as ${clean(event.implementation)}`
    const wait = waited === null ? '' : `, after waiting ${waited}${isIo ? '' : ' for a lane'}`
    this.#say(event, `started${again} ${place}${files}${form}${wait}`)
  }

  #fail(event: Of<'failed'>): void {
    const { failure } = event
    const tries = event.attempt > 1 || event.next === 'retry' ? `, attempt ${event.attempt}` : ''
    const what = `${clean(failure.name)}: ${clean(failure.message.split('\n')[0] ?? '')}`
    this.#say(event, `failed${this.#ran(event)}${tries}: ${what}`)
    if (event.log !== undefined) this.#lines.push(`  what it printed is in ${clean(event.log)}`)
    switch (event.next) {
      case 'retry':
        this.#queuedAt = event.at
        this.#lines.push('  it is tried again')
        return
      case 'ignore':
        this.#lines.push('  its failure is ignored')
        return
      case 'cancelSuccessors':
        this.#lines.push('  the tasks that need its results are cancelled')
        return
      case 'fail':
        this.#lines.push('  its group fails with it')
    }
  }

  #made(): void {
    const writes = this.#submitted?.writes ?? []
    const named = writes.filter(version => this.#path(version) !== null)
    for (const version of named.slice(0, MAX_VERSIONS))
      this.#lines.push(`  it made ${this.#version(version)}`)
    const others = writes.length - Math.min(named.length, MAX_VERSIONS)
    if (others > 0)
      this.#lines.push(`  it made ${plural(others, named.length > 0 ? 'more version' : 'version')}`)
  }

  #version(version: number): string {
    const path = this.#path(version)
    const bytes = this.#world.bytesOf(version)
    const size = bytes > 0 ? ` (${formatBytes(bytes)})` : ''
    return path === null ? `version ${version}${size}` : `${clean(path)}${size}`
  }

  #path(version: number): string | null {
    return this.#submitted?.files?.find(file => file.version === version)?.path ?? null
  }

  #ran(event: TaskEvent): string {
    const ran = since(this.#startedAt, event.at)
    return ran === null ? '' : ` after ${ran}`
  }

  #say(event: TaskEvent, sentence: string): void {
    this.#lines.push(`${time(event.at)}: ${event.type === 'submitted' ? '' : 'it '}${sentence}`)
  }
}

/** Seconds to the millisecond: here the order of small steps matters. */
function time(at: number): string {
  return `${(at / 1000).toFixed(3)}s`
}

function since(from: number | null, to: number): string | null {
  return from === null ? null : formatDuration(Math.max(0, to - from))
}

const STEP_WORDS: Readonly<Record<(typeof STEPS)[number], string>> = {
  fetch: 'fetching its files',
  queue: 'waiting for its turn',
  decode: 'decoding its arguments',
  run: 'running',
  wait: 'waiting for results of others',
  encode: 'encoding its results',
  report: 'until they were taken',
  commit: 'bringing its files to their places',
}

/** Where the time of the attempt went; steps that took none are left out. */
function stepsText(steps: AttemptSteps): string {
  const taken = STEPS.filter(step => steps[step] > 0)
  return `its time: ${taken.map(step => `${exact(steps[step])} ${STEP_WORDS[step]}`).join(', ')}`
}

/** Steps may be much shorter than a millisecond. */
const exact = (milliseconds: number): string =>
  milliseconds < 10 ? `${Number(milliseconds.toFixed(3))}ms` : formatDuration(milliseconds)

/** What a command used, where the system told. */
function usageText(usage: TaskUsage | undefined): string {
  if (!usage) return ''
  const cpu = `${formatDuration(usage.cpuMs)} of CPU, ${formatBytes(usage.peakBytes)} at most`
  return `, with ${cpu}; ${formatBytes(usage.askedBytes)} read, ${formatBytes(usage.readBytes)} of it from devices`
}
