import type { TaskState } from '../src/report/dashboard/protocol.ts'

/** Colours of kinds, which people with any kind of colour vision tell apart, on light and on dark. */
const KIND_COLOURS = ['#4477aa', '#ddaa33', '#44aa99', '#aa4499', '#77bbdd', '#999933', '#bb7755', '#7766cc']

export const FAILED = '#d92d3a'

/** The ninth kind has the colour of the first, and a stripe. */
export const kindColour = (kind: number): string => KIND_COLOURS[kind % KIND_COLOURS.length] ?? '#888888'
export const isStriped = (kind: number): boolean => Math.floor(kind / KIND_COLOURS.length) % 2 === 1

/** Black or white, whichever is read better on a colour. */
export function inkOn(colour: string): string {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16))
  return red * 0.299 + green * 0.587 + blue * 0.114 > 140 ? '#10161d' : '#ffffff'
}

/** States have a shape besides their colour. */
export const STATE_SHAPES: Record<TaskState, string> = {
  unknown: '?',
  waiting: '○',
  ready: '◆',
  running: '▶',
  blocked: '‖',
  done: '✓',
  failed: '✕',
  ignored: '!',
  cancelled: '⊘',
}

export const STATE_WORDS: Record<TaskState, string> = {
  unknown: 'unknown',
  waiting: 'waits for inputs',
  ready: 'ready',
  running: 'running',
  blocked: 'waits for tasks it called',
  done: 'done',
  failed: 'failed',
  ignored: 'failed, ignored',
  cancelled: 'cancelled',
}
