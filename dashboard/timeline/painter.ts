import { ROWS_PER_TILE } from '../../src/report/dashboard/state/tiles.ts'
import type { TimelineSection } from '../../src/report/dashboard/protocol.ts'
import type { Source } from '../source.ts'
import { cssColour } from '../theme.ts'
import { AXIS, paint, ROW, type Scene } from './paint.ts'
import { pan, whole, zoom, type Span } from './span.ts'
import { TileStore } from './tile-store.ts'

export interface Handlers {
  choose: (task: number, name: string) => void
  say: (text: string) => void
}

/** The timeline on its canvas: what part is shown, what people do with it, and when it is drawn. */
export class TimelinePainter {
  span: Span = { from: 0, to: 1 }
  isFollowing = true
  row: number | null = null
  /** How long the last frame took, in milliseconds. */
  frameMs = 0
  readonly #source: Source
  readonly #tiles: TileStore
  readonly #changed: () => void
  #section: TimelineSection | null = null
  #names = new Map<number, string>()
  #task: number | null = null
  #canvas: HTMLCanvasElement | null = null
  #scrollTop = 0
  #frame = 0
  #handlers: Handlers | null = null
  #pointers = new Map<number, { x: number; y: number }>()
  #moved = 0
  /** Of the theme; to ask for them in each frame would make the browser work out all styles again. */
  #colours: Scene['colours'] | null = null

  constructor(source: Source, changed: () => void) {
    this.#source = source
    this.#changed = changed
    this.#tiles = new TileStore(source, () => this.#draw())
  }

  update(section: TimelineSection, task: number | null): void {
    const isNew = section !== this.#section
    this.#section = section
    this.#task = task
    this.#names = new Map(section.kinds.map(({ kind, name }) => [kind, name]))
    if (isNew) {
      this.#tiles.update(section.layout, section.revision)
      if (this.isFollowing) this.span = whole(section.end)
    }
    this.#draw()
  }

  attach(canvas: HTMLCanvasElement, handlers: Handlers): () => void {
    this.#canvas = canvas
    this.#handlers = handlers
    const stop = new AbortController()
    const { signal } = stop
    canvas.addEventListener('wheel', event => this.#wheel(event), { signal, passive: false })
    canvas.addEventListener('pointerdown', event => this.#down(event), { signal })
    canvas.addEventListener('pointermove', event => this.#move(event), { signal })
    canvas.addEventListener('pointerup', event => this.#up(event), { signal })
    canvas.addEventListener('pointercancel', event => this.#pointers.delete(event.pointerId), { signal })
    canvas.addEventListener('keydown', event => this.#key(event), { signal })
    const observer = new ResizeObserver(() => this.#draw())
    observer.observe(canvas)
    const themeChanged = (): void => {
      this.#colours = null
      this.#draw()
    }
    const dark = window.matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', themeChanged, { signal })
    // No frame comes before it is on paper.
    const printed = (): void => {
      this.#colours = null
      this.#paint()
    }
    window.addEventListener('beforeprint', printed, { signal })
    const themes = new MutationObserver(themeChanged)
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] })
    this.#draw()
    return () => {
      stop.abort()
      observer.disconnect()
      themes.disconnect()
      cancelAnimationFrame(this.#frame)
      this.#frame = 0
      this.#canvas = null
    }
  }

  show(span: Span, isFollowing = false): void {
    this.span = span
    this.isFollowing = isFollowing
    this.#draw()
    this.#changed()
  }

  follow(on: boolean): void {
    this.isFollowing = on
    if (on && this.#section) this.span = whole(this.#section.end)
    this.#draw()
    this.#changed()
  }

  zoomBy(factor: number, around = (this.span.from + this.span.to) / 2): void {
    this.show(zoom(this.span, factor, around, this.#section?.end ?? 1))
  }

  #panBy(ms: number): void {
    this.show(pan(this.span, ms, this.#section?.end ?? 1))
  }

  get #gutter(): number {
    return (this.#section?.nodes.length ?? 1) > 1 ? 116 : 62
  }

  get #width(): number {
    return this.#canvas?.clientWidth ?? 1
  }

  #timeAt(left: number): number {
    const share = (left - this.#gutter) / Math.max(1, this.#width - this.#gutter)
    return this.span.from + share * (this.span.to - this.span.from)
  }

  get #msPerPixel(): number {
    return (this.span.to - this.span.from) / Math.max(1, this.#width - this.#gutter)
  }

  #scroll(by: number): boolean {
    const most = Math.max(
      0,
      (this.#section?.rows.length ?? 0) * ROW + AXIS - (this.#canvas?.clientHeight ?? 0),
    )
    const next = Math.max(0, Math.min(most, this.#scrollTop + by))
    if (next === this.#scrollTop) return false
    this.#scrollTop = next
    this.#draw()
    return true
  }

  #wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      event.preventDefault()
      this.zoomBy(1.0015 ** event.deltaY, this.#timeAt(event.offsetX))
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault()
      this.#panBy((event.deltaX || event.deltaY) * this.#msPerPixel)
    } else if (this.#scroll(event.deltaY)) event.preventDefault()
    else if ((this.#section?.rows.length ?? 0) * ROW + AXIS <= (this.#canvas?.clientHeight ?? 0) + 2) {
      // All lanes are in sight: the wheel is free for zooming.
      event.preventDefault()
      this.zoomBy(1.0015 ** event.deltaY, this.#timeAt(event.offsetX))
    }
  }

  #down(event: PointerEvent): void {
    this.#canvas?.setPointerCapture(event.pointerId)
    this.#pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY })
    this.#moved = 0
  }

  #move(event: PointerEvent): void {
    const last = this.#pointers.get(event.pointerId)
    if (!last) return
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1]
    const byX = event.offsetX - last.x
    this.#moved += Math.abs(byX) + Math.abs(event.offsetY - last.y)
    if (other) {
      const before = Math.max(20, Math.abs(last.x - other.x))
      const after = Math.max(20, Math.abs(event.offsetX - other.x))
      this.zoomBy(before / after, this.#timeAt((event.offsetX + other.x) / 2))
    } else if (this.#moved > 3) {
      this.#scroll(last.y - event.offsetY)
      if (byX !== 0) this.#panBy(-byX * this.#msPerPixel)
    }
    this.#pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY })
  }

  #up(event: PointerEvent): void {
    this.#pointers.delete(event.pointerId)
    if (this.#moved > 3) return
    const row = Math.floor((event.offsetY - AXIS + this.#scrollTop) / ROW)
    this.#pick(row, this.#timeAt(event.offsetX))
  }

  #pick(row: number, time: number): void {
    const section = this.#section
    if (!section || row < 0 || row >= section.rows.length) return
    this.row = row
    this.#draw()
    const choose = (task: number, kind: string): void => this.#handlers?.choose(task, `${kind}#${task}`)
    const open = section.open.find(([where, since]) => where === row && time >= since && time <= section.end)
    if (open) return choose(open[2], this.#names.get(open[3]) ?? 'task')
    this.#source.taskAt(row, time, this.#msPerPixel * 6).then(
      task => (task === null ? this.#handlers?.say('no task there') : choose(task, 'task')),
      () => {},
    )
  }

  #key(event: KeyboardEvent): void {
    const width = this.span.to - this.span.from
    const rows = this.#section?.rows.length ?? 0
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.#panBy(-width / 8),
      a: () => this.#panBy(-width / 8),
      ArrowRight: () => this.#panBy(width / 8),
      d: () => this.#panBy(width / 8),
      '+': () => this.zoomBy(1 / 1.4),
      '=': () => this.zoomBy(1 / 1.4),
      w: () => this.zoomBy(1 / 1.4),
      '-': () => this.zoomBy(1.4),
      s: () => this.zoomBy(1.4),
      '0': () => this.show(whole(this.#section?.end ?? 1), true),
      Home: () => this.show(whole(this.#section?.end ?? 1), true),
      f: () => this.follow(!this.isFollowing),
      ArrowUp: () => this.#chooseRow(Math.max(0, (this.row ?? rows) - 1)),
      ArrowDown: () => this.#chooseRow(Math.min(rows - 1, (this.row ?? -1) + 1)),
      Enter: () => this.#pick(this.row ?? 0, (this.span.from + this.span.to) / 2),
    }
    const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.key]
    if (!action) return
    event.preventDefault()
    event.stopPropagation()
    action()
  }

  #chooseRow(row: number): void {
    this.row = row
    const top = row * ROW - this.#scrollTop
    const room = (this.#canvas?.clientHeight ?? 0) - AXIS - ROW
    if (top < 0) this.#scroll(top)
    else if (top > room) this.#scroll(top - room)
    const lane = this.#section?.rows[row]
    if (lane) {
      const node = this.#section?.nodes[lane.node] ?? ''
      this.#handlers?.say(`${lane.isIo ? 'I/O executor' : 'CPU'} ${lane.lane + 1} of ${node}`)
    }
    this.#draw()
  }

  /** At most once per frame. */
  #draw(): void {
    if (this.#frame !== 0 || !this.#canvas) return
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0
      this.#paint()
    })
  }

  #paint(): void {
    const canvas = this.#canvas
    const section = this.#section
    const context = canvas?.getContext('2d')
    if (!canvas || !section || !context) return
    const begun = performance.now()
    const ratio = window.devicePixelRatio || 1
    const width = canvas.clientWidth
    const height = canvas.clientHeight
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio)
      canvas.height = Math.round(height * ratio)
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    const first = Math.floor(this.#scrollTop / ROW)
    const last = Math.min(section.rows.length - 1, first + Math.ceil(height / ROW))
    const scene: Scene = {
      section,
      names: this.#names,
      tiles: this.#tiles.cover(this.span, width - this.#gutter, first, Math.max(first, last)),
      span: this.span,
      gutter: this.#gutter,
      width,
      height,
      scrollTop: this.#scrollTop,
      row: this.row,
      task: this.#task,
      colours: (this.#colours ??= coloursNow()),
    }
    paint(context, scene)
    this.frameMs = performance.now() - begun
    canvas.dataset['frameMs'] = this.frameMs.toFixed(2)
    canvas.dataset['tiles'] = String(scene.tiles.length)
    canvas.dataset['rowsPerTile'] = String(ROWS_PER_TILE)
  }
}

const coloursNow = (): Scene['colours'] => ({
  ink: cssColour('--ink'),
  faint: cssColour('--soft'),
  line: cssColour('--line'),
  back: cssColour('--card'),
  accent: cssColour('--accent'),
  stripe: cssColour('--hover'),
})
