import { MillraceError } from '../errors.ts'
import type { CancelWhy } from '../why.ts'
import type { Task } from './task.ts'

/** Tasks that are waited for, cancelled and that fail together. Groups are a tree; each task is in one of them. */
export interface Group {
  readonly name: string
  readonly parent: Group | null
  readonly children: Set<Group>
  /** Members that have not ended, here and in groups inside. */
  live: number
  first: Task | null
  /** The failure that cancelled the rest; later members are cancelled too until it is acknowledged. */
  failure: Task | null
  cancelled: CancelWhy | null
  /** A member, here or in groups inside, that never ran because the run was closed. */
  missing: Task | null
  watched: boolean
  closed: boolean
}

export function createGroup(name: string, parent: Group | null): Group {
  const group: Group = {
    name,
    parent,
    children: new Set(),
    live: 0,
    first: null,
    failure: null,
    cancelled: null,
    missing: null,
    watched: false,
    closed: false,
  }
  parent?.children.add(group)
  return group
}

/** All live members of a group and of the groups inside it. */
export function* members(group: Group): Generator<Task> {
  for (let task = group.first, next: Task | null; task; task = next) {
    next = task.next
    yield task
  }
  const inside = group.children.size > 0 ? [...group.children] : NO_GROUPS
  for (const child of inside) yield* members(child)
}

const NO_GROUPS: readonly Group[] = []

export function join(task: Task): void {
  const { group } = task
  task.next = group.first
  if (group.first) group.first.before = task
  group.first = task
  for (let at: Group | null = group; at; at = at.parent) at.live++
}

/** `idle` is called with each watched group that has no member left. */
export function leave(task: Task, idle: (group: Group) => void): void {
  const { group } = task
  if (task.before) task.before.next = task.next
  else group.first = task.next
  if (task.next) task.next.before = task.before
  task.next = task.before = null
  for (let at: Group | null = group; at; at = at.parent) {
    at.live--
    if (at.live > 0) continue
    if (at.closed) at.parent?.children.delete(at)
    if (at.watched) {
      at.watched = false
      idle(at)
    }
  }
}

/** The task never runs because the run was closed. */
export function miss(task: Task): void {
  for (let at: Group | null = task.group; at; at = at.parent) at.missing ??= task
}

export interface Refusal {
  cause: Task | null
  why: CancelWhy
}

/** Why a task that comes to this group now must not run. */
export function refusalOf(group: Group): Refusal | null {
  for (let at: Group | null = group; at; at = at.parent) {
    if (at.failure) return { cause: at.failure, why: { kind: 'failed', task: at.failure.title } }
    if (at.cancelled !== null) return { cause: null, why: at.cancelled }
  }
  return null
}

export const openAlready = (name: string): MillraceError =>
  new MillraceError('MR_GROUP', `a group called '${name}' is open already`)
