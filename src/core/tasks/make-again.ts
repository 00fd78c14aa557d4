import { Task } from './task.ts'

/** A task like one that has ended well, with the same inputs: it makes again what was lost of what that one made. */
export function taskAgain(id: number, done: Task, now: number): Task {
  const { kind, group, priority, demand, onFailure, retries, timed, label, near, payload } = done
  const task = new Task(
    id,
    { kind, group, priority, demand, onFailure, retries, timed, label, near, payload },
    now,
  )
  task.accesses = done.accesses
  return task
}
