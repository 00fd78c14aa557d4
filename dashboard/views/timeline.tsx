import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { TimelineSection } from '../../src/report/dashboard/protocol.ts'
import { formatDuration } from '../../src/report/format.ts'
import { isStriped, kindColour } from '../colours.ts'
import { openTask, useHash } from '../hash.ts'
import { Empty, Loading } from '../parts.tsx'
import { useSection, useStore } from '../store.ts'
import { AXIS, ROW } from '../timeline/paint.ts'
import { TimelinePainter } from '../timeline/painter.ts'
import { whole } from '../timeline/span.ts'

const SHOWN_KINDS = 16

/** A lane per CPU and I/O executor, for all of the run. */
export function TimelineView(): preact.JSX.Element {
  const section = useSection('timeline')
  if (!section) return <Loading />
  if (section.rows.length === 0) return <Empty>The run has not told yet which CPUs it has.</Empty>
  return <Timeline section={section} />
}

export function Timeline({ section }: { section: TimelineSection }): preact.JSX.Element {
  const store = useStore()
  const run = useSection('run')
  const canvas = useRef<HTMLCanvasElement>(null)
  const [{ task }] = useHash()
  const [, redraw] = useState(0)
  const [told, setTold] = useState('')
  const painter = useMemo(() => new TimelinePainter(store.source, () => redraw(count => count + 1)), [store])
  painter.update(section, task)
  useEffect(() => {
    if (!canvas.current) return
    return painter.attach(canvas.current, {
      choose: (id, name) => {
        setTold(`${name} chosen`)
        openTask(id)
      },
      say: setTold,
    })
  }, [painter])
  const { span, isFollowing } = painter
  const rows = Math.min(section.rows.length * ROW + AXIS + 2, 720)
  return (
    <div class="timeline">
      <div class="toolbar">
        <button type="button" onClick={() => painter.zoomBy(1 / 1.6)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => painter.zoomBy(1.6)} aria-label="Zoom out">
          −
        </button>
        <button type="button" onClick={() => painter.show(whole(section.end), true)}>
          Whole run
        </button>
        {run?.state === 'running' ? (
          <button type="button" aria-pressed={isFollowing} onClick={() => painter.follow(!isFollowing)}>
            Follow
          </button>
        ) : null}
        <span class="span">
          {formatDuration(Math.max(0, span.from))} – {formatDuration(span.to)}
        </span>
      </div>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Timeline of ${section.rows.length} lanes. Left and right move in time, plus and minus zoom, up and down choose a lane, Enter opens the task at the middle.`}
        style={{ height: `${rows}px` }}
      />
      <p class="sr" role="status">
        {told}
      </p>
      <div class="legend kinds">
        {section.kinds.slice(0, SHOWN_KINDS).map(({ kind, name }) => (
          <span key={kind}>
            <i
              class={`swatch${isStriped(kind) ? ' striped' : ''}`}
              style={{ backgroundColor: kindColour(kind) }}
            />{' '}
            {name}
          </span>
        ))}
        {section.kinds.length > SHOWN_KINDS ? (
          <span>and {section.kinds.length - SHOWN_KINDS} more</span>
        ) : null}
        <span>
          <i class="swatch failed">✕</i> failed
        </span>
      </div>
    </div>
  )
}
