import type { AccessRequest } from '../instruction.ts'
import type { EngineParts, Readiness } from '../schedule/readiness.ts'
import type { Cancellations } from '../tasks/cancellations.ts'
import type { Task } from '../tasks/task.ts'
import { Team, Version, nearestValid } from './datum.ts'
import type { Access, Datum } from './datum.ts'
import { again, whyNeverRead, isUnmade, othersRead } from './graph.ts'
import { canFollow, isFollower, keepsWaiting, takeFollowers } from './growing.ts'

/** Makes versions, settles them, and discards those that nothing needs. */
export class Versions {
  readonly #parts: EngineParts
  readonly #readiness: Readiness
  readonly #cancellations: Cancellations
  readonly #sizeOf: (version: Version) => number

  constructor(
    parts: EngineParts,
    readiness: Readiness,
    cancellations: Cancellations,
    sizeOf: (version: Version) => number,
  ) {
    this.#parts = parts
    this.#readiness = readiness
    this.#cancellations = cancellations
    this.#sizeOf = sizeOf
  }

  // --- what a task that is submitted reads and writes ---

  access(task: Task, { datum, mode: asked }: AccessRequest, now: number): Access {
    const { current } = datum
    const mode = datum.inPlace && asked === 'out' ? 'inout' : asked
    datum.users?.add(task)
    if (current.producer === task || current.team?.newest === task) return again(current, mode)
    if (mode === 'concurrent' || mode === 'commutative') {
      let version = current
      let team = current.team
      if (!team || team.closed || team.mode !== mode) {
        this.closeTeam(current, now)
        team = new Team(mode, current)
        version = supersede(datum)
        version.team = team
      }
      team.tasks.add(task)
      team.newest = task
      team.live++
      return { mode, read: team.base, write: version }
    }
    this.closeTeam(current, now)
    if (mode === 'in') return { mode, read: current, write: null }
    // A result is made for the task that makes it, and needs no version before that.
    const version = mode === 'out' && isUnmade(current) ? current : supersede(datum)
    version.producer = task
    return { mode, read: mode === 'inout' ? current : null, write: version }
  }

  /** Returns an input that will never come, if there is one. */
  waitForInputs(task: Task): Version | null {
    let doom: Version | null = null
    for (const { read } of task.accesses) {
      if (!read) continue
      read.readers++
      if (read.growth?.open && canFollow(task)) read.growth.followers.add(task)
      if (keepsWaiting(task, read)) {
        if (read.waiters) read.waiters.push(task)
        else read.waiters = [task]
        task.missing++
      } else if (read.state === 'failed' || read.state === 'cancelled') doom = read
    }
    for (const { write } of task.accesses) if (write?.datum.inPlace) waitForReaders(task, write)
    return doom
  }

  // --- how a version is settled ---

  commit(version: Version, now: number): void {
    if (version.state !== 'pending') return
    const { observer } = this.#parts.observed
    version.state = 'ready'
    version.producer = null
    this.retireFrom(version.previous)
    version.previous = null
    if (observer && version.datum.path !== null) {
      observer({ type: 'committed', at: now, version: version.id, bytes: this.#sizeOf(version) })
    }
    this.#settle(version, now)
    // Tasks that follow nothing any more want a CPU like all others.
    if (version.growth) {
      for (const task of version.growth.followers) if (!isFollower(task)) this.#readiness.unblocked(task)
    }
  }

  /** The task will not make this version, or its part of it. */
  lose(task: Task, write: Version, now: number): void {
    const { team } = write
    if (team) {
      team.failed ??= task
      this.#memberEnded(task, write, team, now)
    } else if (write.state === 'pending') this.spoil(write, task, now)
  }

  /** The version never comes because of this task, or of what it was cancelled for. */
  spoil(version: Version, by: Task, now: number): void {
    version.state = by.state === 'failed' ? 'failed' : 'cancelled'
    version.cause = by.state === 'failed' ? by : (by.cause ?? by)
    // Tasks that wait for it get the task that should have made it as the cause.
    version.producer = by
    if (version.growth) for (const task of version.growth.followers) this.#doom(task, version)
    this.#settle(version, now)
  }

  /** An attempt of its producer has begun to write it, and it may be read as it grows. */
  grows(version: Version, now: number): void {
    if (version.state !== 'pending' || !version.growth || version.growth.open) return
    version.growth.open = true
    for (const task of takeFollowers(version)) {
      version.growth.followers.add(task)
      if (--task.missing === 0) this.#readiness.ready(task, now)
    }
  }

  /** The task has made this version, alone or with its team. */
  made(task: Task, write: Version, now: number): void {
    if (write.team) this.#memberEnded(task, write, write.team, now)
    else this.commit(write, now)
  }

  /** It is lost, and this task makes it again. Tasks that read it learn that when they begin. */
  unmake(version: Version, by: Task): void {
    version.state = 'pending'
    version.producer = by
    version.value = undefined
  }

  readerEnded(version: Version, now: number): void {
    version.readers--
    if (version.readers === 0 && version.place) this.#parts.io.unread(version)
    if (version.afterReaders) this.#wakeWriters(version, version.afterReaders, now)
    if (version.readers === 0 && version.readersWatched) {
      version.readersWatched = false
      this.#parts.instructions.push({ type: 'unread', version })
    }
    this.discardIfUnused(version)
  }

  #wakeWriters(version: Version, writers: readonly Task[], now: number): void {
    version.afterReaders = writers.filter(writer => {
      if (othersRead(version, writer)) return true
      if (writer.state === 'waiting' && --writer.missing === 0) this.#readiness.ready(writer, now)
      return false
    })
    if (version.afterReaders.length === 0) version.afterReaders = null
  }

  #settle(version: Version, now: number): void {
    if (version.watched) {
      version.watched = false
      this.#parts.instructions.push({ type: 'settled', version })
    }
    const { waiters } = version
    version.waiters = null
    if (waiters) {
      for (const task of waiters) {
        if (task.state !== 'waiting') continue
        if (version.state !== 'ready') this.#doom(task, version)
        else if (--task.missing === 0) this.#readiness.ready(task, now)
      }
    }
    this.discardIfUnused(version)
  }

  #doom(task: Task, version: Version): void {
    this.#cancellations.add(task, version.cause, whyNeverRead(version))
  }

  // --- teams ---

  closeTeam(version: Version, now: number): void {
    const { team } = version
    if (!team || team.closed) return
    team.closed = true
    if (team.live === 0) this.#settleTeam(version, team, now)
  }

  #memberEnded(task: Task, version: Version, team: Team, now: number): void {
    team.tasks.delete(task)
    team.live--
    if (team.closed && team.live === 0) this.#settleTeam(version, team, now)
  }

  #settleTeam(version: Version, team: Team, now: number): void {
    // Nothing asks for the team again, and it holds on to the version that it started from.
    version.team = null
    if (team.failed) this.spoil(version, team.failed, now)
    else this.commit(version, now)
  }

  // --- what the program does with a datum ---

  /** The main program gives the datum a value of its own. */
  write(datum: Datum, value: unknown, now: number): Version {
    this.closeTeam(datum.current, now)
    const before = datum.current
    const version = new Version(datum, null)
    version.state = 'ready'
    version.value = value
    datum.current = version
    this.retireFrom(before)
    return version
  }

  /** After the program has seen a failure, the datum is what it was before. */
  fallBack(datum: Datum): void {
    const valid = nearestValid(datum.current)
    // Versions that never came may have something in them, from members of a team that did end.
    for (let lost = datum.current; lost !== valid; lost = lost.previous as Version) this.#retire(lost)
    datum.current = valid
    valid.superseded = false
  }

  watch(version: Version): void {
    if (version.settled) this.#parts.instructions.push({ type: 'settled', version })
    else version.watched = true
  }

  watchReaders(version: Version): void {
    if (version.readers === 0) this.#parts.instructions.push({ type: 'unread', version })
    else version.readersWatched = true
  }

  // --- what nothing needs ---

  /** Retires this version and all before it; what is obsolete already has nothing left before it. */
  retireFrom(version: Version | null): void {
    for (let at = version; at && !at.obsolete; at = at.previous) this.#retire(at)
  }

  /** Nothing can fall back to this version; once its readers have ended, nothing needs it. */
  #retire(version: Version): void {
    version.superseded = true
    version.obsolete = true
    this.discardIfUnused(version)
  }

  discardIfUnused(version: Version): void {
    if (version.obsolete && version.readers === 0 && version.settled && version.value !== undefined) {
      // What is on its way to another device is discarded when it has arrived.
      if (version.place?.move) return
      this.#parts.instructions.push({ type: 'discard', version })
    }
  }
}

/** A new version of the datum, which is its current one from now on. */
function supersede(datum: Datum): Version {
  const before = datum.current
  const version = new Version(datum, before)
  datum.current = version
  before.superseded = true
  return version
}

/** A writer of in-place memory waits for the tasks that read the version before. */
function waitForReaders(task: Task, write: Version): void {
  const older = write.team ? write.team.base : write.previous
  if (older && !older.afterReaders?.includes(task) && othersRead(older, task)) {
    ;(older.afterReaders ??= []).push(task)
    task.missing++
  }
}
