import type { AccessMode, Datum, Version } from './data/datum.ts'
import type { Move } from './io/task-io.ts'
import type { RecallInstruction } from './schedule/recalls.ts'
import type { Group } from './tasks/group.ts'
import type { Task } from './tasks/task.ts'

/** What `Engine.decide` says is to be done. */
export type Instruction =
  /** Run this attempt of the task on its node and lane; its files go to `task.io.device`, if that is set. */
  | { type: 'start'; task: Task }
  /** See whether the results of the ready task are known; `answered` or `unanswered` is to be called. */
  | { type: 'look'; task: Task }
  /** The blocked task may go on, on its lane. */
  | { type: 'resume'; task: Task }
  /** Stop the attempt; `stopped` is to be called when it has stopped. */
  | { type: 'stop'; task: Task }
  | RecallInstruction
  /** This version has no readers any more. */
  | { type: 'discard'; version: Version }
  /** Copy the version to another device, at no more than `move.rate`; `io.moved` or `io.moveFailed` answers. */
  | { type: 'move'; move: Move }
  /** The rate of a move has changed. */
  | { type: 'pace'; move: Move }
  /** A watched version is committed, failed or cancelled. */
  | { type: 'settled'; version: Version }
  /** A version whose readers are watched has none left. */
  | { type: 'unread'; version: Version }
  /** A watched group has no member left. */
  | { type: 'idle'; group: Group }

/** What was decided since the last `decide`. */
export class Instructions {
  #list: Instruction[] = []
  #hasStops = false

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  push(instruction: Instruction): void {
    this.#list.push(instruction)
  }

  stop(task: Task): void {
    this.#hasStops = true
    this.#list.push({ type: 'stop', task })
  }

  take(): Instruction[] {
    if (this.#list.length === 0) return NONE
    const list = this.#list
    this.#list = []
    if (!this.#hasStops) return list
    this.#hasStops = false
    // Some tasks may have ended by themselves since.
    return list.filter(one => one.type !== 'stop' || one.task.state === 'stopping')
  }
}

const NONE: Instruction[] = []

/** How a task that is submitted uses a datum. */
export interface AccessRequest {
  datum: Datum
  mode: AccessMode
  /** What is written may be read as it grows, by tasks that can. */
  grows?: boolean
}
