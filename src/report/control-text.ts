import type { RunEvent } from '../core/events.ts'
import { formatCount } from './format.ts'

/** What someone did on the live page, in a sentence. */
export function controlText(event: Extract<RunEvent, { type: 'control' }>): string {
  const { action, by, what = 'a task', count, priority = 0 } = event
  const whom = count === undefined ? what : `${formatCount(count)} ${what} tasks`
  switch (action) {
    case 'pause':
      return `${by} paused the run: nothing starts until it goes on`
    case 'go-on':
      return `${by} let the run go on`
    case 'stop':
      return `${by} stopped the run`
    case 'cancel':
      return `${by} cancelled ${what}`
    case 'priority':
      return `${by} gave ${whom} priority ${priority}`
  }
}
