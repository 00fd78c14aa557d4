import type { RunEvent } from '../../core/events.ts'
import { formatDuration, plural } from '../format.ts'
import { clean } from '../text.ts'
import { Slicer } from './trace-slices.ts'
import { writeWhole } from './write-whole.ts'

/**
 * A run as a picture: a lane for each CPU, a slice for each task, a colour for each kind. It is one SVG
 * file without scripts or fonts, so it can go into a page or a report as it is.
 */

/** Categories that people with colour blindness can tell apart; further kinds share the last one. */
const COLOURS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#f0e442', '#999999']
const FAILED = '#c00000'

const WIDTH = 960
const LEFT = 70
const LANE = 26
const GAP = 6
const TOP = 34

/** Slices that lie in one pixel are one rectangle, so that a million tasks make a picture and not a gigabyte. */
const PIXEL = 1

export async function writePicture(events: AsyncIterable<RunEvent>, path: string): Promise<void> {
  await writeWhole(path, [await pictureText(events)])
}

export async function pictureText(events: AsyncIterable<RunEvent>): Promise<string> {
  const slices: Shown[] = []
  let tasks = 0
  let cpus: readonly number[] = []
  const kinds = new Map<number, string>()
  let title = ''
  let simulated = false
  const slicer = new Slicer(({ start, end, node, lane, task, outcome, isFirst }) => {
    if (isFirst) tasks++
    // Only what is drawn is kept: there may be millions.
    const isFailed = outcome === 'failed'
    slices.push({ start, end, lane: node * MOST_LANES + lane, kind: task.kind, task: task.id, isFailed })
  })
  for await (const event of events) {
    slicer.observe(event)
    if (event.type === 'kind-defined') kinds.set(event.kind, event.name)
    if (event.type === 'run-started') {
      title = event.run
      cpus = event.nodes.map(node => node.cpus)
      simulated = event.simulated
    }
  }
  slicer.finish()
  const nameOf = (lane: number): string => {
    const own = lane % MOST_LANES
    const ofNode = cpus[Math.floor(lane / MOST_LANES)] ?? Infinity
    return own < ofNode ? `CPU ${own}` : `I/O ${own - ofNode}`
  }
  const heading = `${title}${simulated ? ' (simulated)' : ''}: ${plural(tasks, 'task')}`
  return draw(slices, kinds, heading, nameOf)
}

interface Shown {
  start: number
  end: number
  lane: number
  kind: number
  task: number
  isFailed: boolean
}

/** Lanes of several nodes are numbered one after the other. */
const MOST_LANES = 1_000_000

function draw(
  slices: Shown[],
  kinds: ReadonlyMap<number, string>,
  heading: string,
  nameOf: (lane: number) => string,
): string {
  const from = slices.reduce((least, { start }) => Math.min(least, start), Infinity)
  const to = slices.reduce((most, { end }) => Math.max(most, end), 0)
  const span = Math.max(1, to - (Number.isFinite(from) ? from : 0))
  const scale = (WIDTH - LEFT - 10) / span
  const lanes = [...new Set(slices.map(({ lane }) => lane))].sort((a, b) => a - b)
  const colours = new Map(
    [...kinds.keys()].map((kind, i) => [kind, COLOURS[Math.min(i, COLOURS.length - 1)] as string]),
  )
  const height = TOP + lanes.length * (LANE + GAP) + 50
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="10" y="20" font-weight="bold">${escape(heading)} in ${formatDuration(span / 1e6)}</text>`,
  ]
  lanes.forEach((lane, row) => {
    const y = TOP + row * (LANE + GAP)
    lines.push(
      `<text x="10" y="${y + 17}">${nameOf(lane)}</text>`,
      `<rect x="${LEFT}" y="${y}" width="${WIDTH - LEFT - 10}" height="${LANE}" fill="#f2f2f2"/>`,
    )
    const own = slices.filter(slice => slice.lane === lane).sort((a, b) => a.start - b.start)
    for (const { x, width, slice, count } of merged(own, from, scale)) {
      const fill = slice.isFailed ? FAILED : (colours.get(slice.kind) ?? '#999999')
      const name = count > 1 ? `${count} tasks` : `${kinds.get(slice.kind) ?? 'task'}#${slice.task}`
      lines.push(
        `<rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${LANE}" fill="${fill}" stroke="#ffffff" stroke-width="0.3"><title>${escape(name)}, ${formatDuration((slice.end - slice.start) / 1e6)}</title></rect>`,
      )
    }
  })
  const bottom = TOP + lanes.length * (LANE + GAP)
  lines.push(...axis(span, scale, bottom), ...legend(kinds, colours, bottom + 38), '</svg>', '')
  return lines.join('\n')
}

interface Drawn {
  x: number
  width: number
  slice: Shown
  count: number
}

function merged(slices: Shown[], from: number, scale: number): Drawn[] {
  const drawn: Drawn[] = []
  for (const slice of slices) {
    const x = LEFT + (slice.start - from) * scale
    const width = Math.max((slice.end - slice.start) * scale, 0.3)
    const last = drawn.at(-1)
    if (last && x + width < last.x + PIXEL) {
      last.count++
      last.width = Math.max(last.width, x + width - last.x)
    } else drawn.push({ x, width, slice, count: 1 })
  }
  return drawn
}

function axis(span: number, scale: number, y: number): string[] {
  const steps = 8
  return Array.from({ length: steps + 1 }, (_, i) => {
    const at = (span * i) / steps
    const anchor = i === 0 ? 'start' : i === steps ? 'end' : 'middle'
    return `<text x="${(LEFT + at * scale).toFixed(1)}" y="${y + 14}" text-anchor="${anchor}" fill="#555555">${formatDuration(at / 1e6)}</text>`
  })
}

function legend(
  kinds: ReadonlyMap<number, string>,
  colours: ReadonlyMap<number, string>,
  y: number,
): string[] {
  let x = LEFT
  return [...kinds].flatMap(([kind, name]) => {
    if (x > WIDTH - 100) return []
    const at = x
    x += 30 + name.length * 7
    return [
      `<rect x="${at}" y="${y - 10}" width="12" height="12" fill="${colours.get(kind)}"/>`,
      `<text x="${at + 17}" y="${y}">${escape(name)}</text>`,
    ]
  })
}

const escape = (text: string): string =>
  clean(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
