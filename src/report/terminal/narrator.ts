import { hadNotBegun } from '../../core/events.ts'
import type { RunEvent } from '../../core/events.ts'
import { Completions, type CompletionState } from './completions.ts'
import { failureBlock, failureLine, keptFailureBlocks, keptFailureLines } from './failure-block.ts'
import type { Paint } from './paint.ts'
import { KEPT_FAILURES, Statistics } from '../statistics/statistics.ts'
import { summaryLines } from './summary.ts'
import { controlText } from '../control-text.ts'
import { clean } from '../text.ts'
import { formatDuration } from '../format.ts'

type Of<T extends RunEvent['type']> = Extract<RunEvent, { type: T }>

export interface NarratorOptions {
  /** Prints one or several lines, given without the last line end. */
  print: (text: string) => void
  paint: Paint
  columns: () => number
  now: () => number
  /** Whether tasks that end well get a line too. */
  isVerbose: boolean
  journal?: string | undefined
}

/** Failures in full that are repeated at the end; the rest of those kept get one line each. */
const BLOCKS_AT_END = 3

/** Says in lines what happens in a run. Live and plain mode differ only in what they do around it. */
export class Narrator {
  readonly statistics = new Statistics()
  readonly completions: Completions
  readonly #options: NarratorOptions
  #clockAt = 0
  /** Nothing was printed since a failure in full. */
  #isFailureLast = false

  constructor(options: NarratorOptions) {
    const print = (text: string): void => {
      this.#isFailureLast = false
      options.print(text)
    }
    this.#options = { ...options, print }
    this.completions = new Completions({ ...this.#options, progress: () => this.progress })
  }

  get progress(): string {
    return `[${this.statistics.ended}/${this.statistics.total.submitted}]`
  }

  /** Time of the run now, which is later than its last event; a simulated run has no other time than that. */
  get elapsed(): number {
    const { run, elapsed } = this.statistics
    if (run === null || run.simulated) return elapsed
    return Math.max(elapsed, this.#options.now() - this.#clockAt)
  }

  observe(event: RunEvent): void {
    const { statistics } = this
    const { print, paint, isVerbose } = this.#options
    switch (event.type) {
      case 'finished': {
        if (isVerbose) this.#completed(event.kept ? 'up to date' : 'ok', event)
        else statistics.observe(event)
        return
      }
      case 'kept':
        if (isVerbose) this.#completed('kept', event)
        else statistics.observe(event)
        return
      case 'cancelled':
        if (isVerbose) this.#completed('cancelled', event, event.reason)
        else statistics.observe(event)
        return
      case 'failed':
        return this.#failed(event)
      case 'run-started':
        this.#clockAt = this.#options.now() - event.at
        break
      case 'note':
        print(event.level === 'warning' ? `${paint.warn('warning')} ${clean(event.text)}` : clean(event.text))
        break
      case 'control':
        print(clean(controlText(event)))
        break
      case 'stream':
        break
      case 'thread-died':
        print(
          `${paint.warn('warning')} thread ${event.lane}${this.#onNode(event.node)} died: ${clean(event.reason)}`,
        )
        break
      case 'interrupted':
        print(`${paint.warn(clean(event.signal))} ${afterSignal(event.signal, event.times)}`)
        this.#stillRunning(event.at)
        break
      case 'returned':
        if (isVerbose && !hadNotBegun(event)) return this.#completed('retry', event, event.reason)
        break
      default:
        break
    }
    statistics.observe(event)
  }

  /** Summary first, failures last: what is at the end of the output is what people read. */
  conclude(): void {
    const { print, paint, journal, isVerbose } = this.#options
    this.completions.flush()
    if (this.statistics.run === null && this.statistics.total.submitted === 0) return
    const lines = summaryLines(this.statistics, paint, { journal, isTold: true })
    // In verbose mode the blocks are above and stay there. Right below its block, a failure needs no line either.
    const isInSight = this.#isFailureLast && isVerbose && this.statistics.failureCount === 1
    if (this.statistics.failureCount > 0 && !isInSight) {
      lines.push('')
      if (isVerbose) lines.push(...keptFailureLines(this.statistics, paint))
      else lines.push(...keptFailureBlocks(this.statistics, BLOCKS_AT_END, paint))
    }
    print(lines.join('\n'))
  }

  #failed(event: Of<'failed'>): void {
    const { print, paint, isVerbose } = this.#options
    const { statistics } = this
    if (event.next === 'retry') return this.#completed('retry', event, causeOf(event))
    if (event.next === 'ignore') return this.#completed('ignored', event, causeOf(event))
    const willBeKept = statistics.failureCount < KEPT_FAILURES
    if (!willBeKept) return this.#completed('failed', event, causeOf(event))
    if (isVerbose) this.#completed('failed', event)
    else statistics.observe(event)
    const name = statistics.failedName(event.task)
    this.completions.flush()
    print(failureBlock(event, name, statistics.run, paint).join('\n'))
    this.#isFailureLast = true
  }

  #completed(
    state: CompletionState,
    event: Of<'finished' | 'kept' | 'failed' | 'cancelled' | 'returned'>,
    why?: string,
  ): void {
    const attempt = this.statistics.attemptOf(event.task)
    const name = this.statistics.kindName(event.task)
    const label = this.statistics.labelOf(event.task)
    this.statistics.observe(event)
    const took = attempt ? event.at - attempt.startedAt : null
    this.completions.add({
      state,
      name,
      task: event.task,
      label,
      took,
      ...(why === undefined ? {} : { detail: why }),
    })
  }

  /** A task that never ends is found by its name. */
  #stillRunning(at: number): void {
    const running = this.statistics.slowest(Infinity)
    if (running.length === 0) return
    const named = running
      .slice(0, NAMED)
      .map(
        ({ task, startedAt }) => `${clean(this.statistics.nameOf(task))} ${formatDuration(at - startedAt)}`,
      )
    if (running.length > NAMED) named.push(`${running.length - NAMED} more`)
    this.#options.print(`  still running: ${named.join(', ')}`)
  }

  #onNode(node: number): string {
    const nodes = this.statistics.nodes.all
    return nodes.length > 1 ? ` of ${clean(nodes[node]?.name ?? `node ${node}`)}` : ''
  }
}

/** How many of the tasks that still run are named at an interruption. */
const NAMED = 5

function causeOf(event: Of<'failed'>): string {
  return failureLine(event, '').slice(2)
}

function afterSignal(signal: string, times: number): string {
  if (signal === 'SIGTERM') return 'running tasks are killed'
  return times > 1
    ? 'again: running tasks are killed'
    : 'nothing new is started, running tasks are waited for; once more kills them'
}
