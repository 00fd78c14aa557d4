import { outcomeNumber, SLICE_OUTCOMES } from '../../src/report/dashboard/state/lanes.ts'
import {
  BUCKETS,
  bucketMs,
  ITEM,
  PARTS,
  ROWS_PER_TILE,
  tileMs,
} from '../../src/report/dashboard/state/tiles.ts'
import type { TileAnswer, TimelineSection } from '../../src/report/dashboard/protocol.ts'
import { formatDuration } from '../../src/report/format.ts'
import { FAILED, inkOn, isStriped, kindColour } from '../colours.ts'
import { ticks, type Span } from './span.ts'

export const ROW = 22
export const AXIS = 26

export interface Scene {
  section: TimelineSection
  names: ReadonlyMap<number, string>
  tiles: readonly TileAnswer[]
  span: Span
  /** Width of the lanes' names, to the left of all. */
  gutter: number
  width: number
  height: number
  scrollTop: number
  /** The row that the keyboard is on. */
  row: number | null
  task: number | null
  colours: { ink: string; faint: string; line: string; back: string; accent: string; stripe: string }
}

const FAILED_OUTCOME = outcomeNumber('failed')

/** Draws the timeline. What is out of sight costs nothing. */
export function paint(context: CanvasRenderingContext2D, scene: Scene): void {
  const { width, height, gutter, colours } = scene
  context.fillStyle = colours.back
  context.fillRect(0, 0, width, height)
  context.font = '11px system-ui, sans-serif'
  context.textBaseline = 'middle'
  context.save()
  context.beginPath()
  context.rect(gutter, AXIS, width - gutter, height - AXIS)
  context.clip()
  grid(context, scene)
  const labels = new Labels()
  for (const tile of scene.tiles) paintTile(context, scene, tile, labels)
  paintOpen(context, scene, labels)
  labels.paint(context, scene)
  context.restore()
  axis(context, scene)
  names(context, scene)
}

const x = ({ span, gutter, width }: Scene, time: number): number =>
  gutter + ((time - span.from) / (span.to - span.from)) * (width - gutter)

const y = ({ scrollTop }: Scene, row: number): number => AXIS + row * ROW - scrollTop

function grid(context: CanvasRenderingContext2D, scene: Scene): void {
  const { section, colours, width, gutter, height } = scene
  context.fillStyle = colours.line
  for (const time of ticks(scene.span, Math.max(2, Math.floor((width - gutter) / 110))).at)
    context.fillRect(x(scene, time), AXIS, 1, section.rows.length * ROW)
  section.rows.forEach((row, i) => {
    const top = y(scene, i)
    if (top > height || top + ROW < AXIS) return
    if (i === scene.row) {
      context.fillStyle = colours.stripe
      context.fillRect(gutter, top, width - gutter, ROW)
    }
    const isNewNode = i > 0 && section.rows[i - 1]?.node !== row.node
    context.fillStyle = isNewNode ? colours.faint : colours.line
    context.fillRect(gutter, top, width - gutter, isNewNode ? 1 : 0.5)
  })
}

function paintTile(context: CanvasRenderingContext2D, scene: Scene, tile: TileAnswer, labels: Labels): void {
  const start = tile.index * tileMs(tile.level)
  const scale = (scene.width - scene.gutter) / (scene.span.to - scene.span.from)
  const part = (bucketMs(tile.level) / PARTS) * scale
  const origin = x(scene, start)
  const { width, gutter, height } = scene
  // Most items are merged ones a pixel or two wide: the brush is changed only where they differ.
  let brush = -1
  tile.rows.forEach((items, i) => {
    const top = y(scene, tile.group * ROWS_PER_TILE + i) + 2
    if (top > height || top + ROW < AXIS) return
    for (let at = 0; at < items.length; at += ITEM) {
      const left = origin + (items[at] ?? 0) * part
      const wide = (items[at + 1] ?? 0) * part
      const isCut = (items[at] ?? 0) + (items[at + 1] ?? 0) === BUCKETS * PARTS
      if (left > width || left + wide < gutter) continue
      if ((items[at + 4] ?? 0) < 0 && (items[at + 3] ?? 0) !== FAILED_OUTCOME && wide <= 4) {
        const shade = Math.round((items[at + 5] ?? 0) / 16)
        const wanted = (items[at + 2] ?? 0) * 32 + shade
        if (wanted !== brush) {
          brush = wanted
          context.globalAlpha = 0.25 + (0.75 * shade) / 16
          context.fillStyle = kindColour(items[at + 2] ?? 0)
        }
        context.fillRect(left, top, Math.max(wide, 0.7), ROW - 4)
        continue
      }
      brush = -1
      slice(
        context,
        scene,
        left,
        top,
        wide,
        items[at + 2] ?? 0,
        items[at + 3] ?? 0,
        items[at + 4] ?? 0,
        items[at + 5] ?? 0,
        isCut,
      )
      const task = items[at + 4] ?? 0
      const isMarked = wide > LABELLED || (items[at + 3] ?? 0) === FAILED_OUTCOME
      // A slice that goes on in the next tile, or began in the one before, has one name for all of its pieces.
      if (task >= 0 && (isMarked || isCut || items[at] === 0))
        labels.add(top, left, wide, items[at + 2] ?? 0, items[at + 3] ?? 0, task)
    }
  })
  context.globalAlpha = 1
}

function slice(
  context: CanvasRenderingContext2D,
  scene: Scene,
  left: number,
  top: number,
  wide: number,
  kind: number,
  outcome: number,
  task: number,
  fill: number,
  isCut = false,
): void {
  const tall = ROW - 4
  const colour = kindColour(kind)
  const state = SLICE_OUTCOMES[outcome]
  const isMerged = task < 0
  // A gap between neighbours, where there is room for one, and none to the piece in the next tile: it begins within a pixel.
  const room = isCut ? Math.ceil(left + wide) - left : wide > 4 ? wide - 1 : wide
  const drawn = Math.max(room, 0.7)
  context.globalAlpha = isMerged
    ? 0.25 + 0.75 * (fill / 255)
    : state === 'cancelled' || state === 'returned'
      ? 0.45
      : 1
  context.fillStyle = colour
  context.fillRect(left, top, drawn, tall)
  if (isStriped(kind) && drawn > 3) {
    context.fillStyle = scene.colours.back
    context.globalAlpha *= 0.45
    context.fillRect(left, top + tall / 2 - 1.5, drawn, 3)
  }
  if (state === 'failed') failure(context, left, top, drawn, tall, isMerged)
  if (task >= 0 && task === scene.task) {
    context.globalAlpha = 1
    context.strokeStyle = scene.colours.ink
    context.lineWidth = 2
    context.strokeRect(left, top, Math.max(drawn, 2), tall)
  }
}

/** Failures have a shape besides their colour, and are seen also where they are narrow. */
function failure(
  context: CanvasRenderingContext2D,
  left: number,
  top: number,
  wide: number,
  tall: number,
  isMerged: boolean,
): void {
  context.globalAlpha = 1
  context.fillStyle = FAILED
  const shown = Math.max(wide, 3)
  context.fillRect(left, top, shown, tall)
  if (isMerged) cross(context, left, top, shown)
}

/** Gives the room that it took. */
function cross(context: CanvasRenderingContext2D, left: number, top: number, wide: number): number {
  if (wide < 9) return 0
  const tall = ROW - 4
  context.strokeStyle = '#ffffff'
  context.lineWidth = 1.5
  const middle = left + Math.min(wide / 2, 9)
  context.beginPath()
  context.moveTo(middle - 4, top + tall / 2 - 4)
  context.lineTo(middle + 4, top + tall / 2 + 4)
  context.moveTo(middle + 4, top + tall / 2 - 4)
  context.lineTo(middle - 4, top + tall / 2 + 4)
  context.stroke()
  return 12
}

/** Slices that are narrower have no name. */
const LABELLED = 34

interface Labelled {
  left: number
  right: number
  top: number
  kind: number
  outcome: number
  task: number
}

/** Names of slices. Tiles cut slices into pieces; the name stands once, on all of them. */
class Labels {
  readonly #slices = new Map<string, Labelled>()

  add(top: number, left: number, wide: number, kind: number, outcome: number, task: number): void {
    const right = left + wide
    // An attempt that began again on the same lane is a slice of its own.
    const key = `${top}/${task}/${outcome}`
    const known = this.#slices.get(key)
    if (known && left <= known.right + 1 && right >= known.left - 1) {
      known.left = Math.min(known.left, left)
      known.right = Math.max(known.right, right)
    } else this.#slices.set(known ? `${key}/${left}` : key, { left, right, top, kind, outcome, task })
  }

  paint(context: CanvasRenderingContext2D, scene: Scene): void {
    context.globalAlpha = 1
    for (const slice of this.#slices.values()) label(context, scene, slice)
  }
}

function label(context: CanvasRenderingContext2D, scene: Scene, slice: Labelled): void {
  const { top, right, kind, task } = slice
  const isFailed = slice.outcome === FAILED_OUTCOME
  let from = Math.max(slice.left, scene.gutter)
  if (isFailed) from += cross(context, from, top, right - from)
  const room = right - from - 8
  if (right - slice.left <= LABELLED || room < 26) return
  const name = scene.names.get(kind) ?? ''
  const letters = Math.floor(room / 6.2)
  const text = `${name}#${task}`
  context.fillStyle = isFailed ? '#ffffff' : inkOn(kindColour(kind))
  // Letters of some scripts are wider than is reckoned here.
  context.fillText(
    text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`,
    from + 5,
    top + (ROW - 4) / 2 + 0.5,
    room,
  )
}

/** What runs now, up to now. */
function paintOpen(context: CanvasRenderingContext2D, scene: Scene, labels: Labels): void {
  const { section } = scene
  for (const [row, since, task, kind] of section.open) {
    const top = y(scene, row) + 2
    if (top > scene.height || top + ROW < AXIS) continue
    const left = x(scene, since)
    const right = x(scene, section.end)
    if (right < scene.gutter || left > scene.width) continue
    slice(context, scene, left, top, Math.max(right - left, 1), kind, 1, task, 255)
    labels.add(top, left, right - left, kind, 1, task)
    context.fillStyle = scene.colours.accent
    context.globalAlpha = 1
    context.fillRect(right - 2, top, 2, ROW - 4)
  }
  context.globalAlpha = 1
}

function axis(context: CanvasRenderingContext2D, scene: Scene): void {
  const { colours, width, gutter, span } = scene
  context.fillStyle = colours.back
  context.fillRect(0, 0, width, AXIS)
  const { at, step } = ticks(span, Math.max(2, Math.floor((width - gutter) / 110)))
  for (const time of at) {
    const left = x(scene, time)
    if (left < gutter - 1) continue
    context.fillStyle = colours.line
    context.fillRect(left, AXIS - 6, 1, 6)
    const text = tickText(time, step)
    if (left + 4 + context.measureText(text).width > width) continue
    context.fillStyle = colours.faint
    context.fillText(text, left + 4, AXIS / 2)
  }
}

function tickText(time: number, step: number): string {
  if (step < 1) return `${Number(time.toFixed(3))}ms`
  if (step < 1000 && time >= 1000) return `${Number((time / 1000).toFixed(3))}s`
  return formatDuration(time)
}

function names(context: CanvasRenderingContext2D, scene: Scene): void {
  const { section, colours, gutter, height } = scene
  context.fillStyle = colours.back
  context.fillRect(0, AXIS, gutter, height)
  const several = section.nodes.length > 1
  const cpus = new Map<number, number>()
  for (const { node, isIo } of section.rows) if (!isIo) cpus.set(node, (cpus.get(node) ?? 0) + 1)
  section.rows.forEach(({ node, lane, isIo }, i) => {
    const top = y(scene, i)
    if (top > height || top + ROW < AXIS) return
    const isFirst = i === 0 || section.rows[i - 1]?.node !== node
    const text = isIo ? `I/O ${lane - (cpus.get(node) ?? 0) + 1}` : `CPU ${lane + 1}`
    context.fillStyle = i === scene.row ? colours.ink : colours.faint
    context.textAlign = 'right'
    context.fillText(text, gutter - 8, top + ROW / 2)
    context.textAlign = 'left'
    if (several && isFirst) {
      context.fillStyle = colours.ink
      context.fillText((section.nodes[node] ?? '').slice(0, 8), 6, top + ROW / 2)
    }
  })
}
