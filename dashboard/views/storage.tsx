import type { DeviceRow, MoveRow, RunSection, StorageSection } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from '../../src/report/format.ts'
import { Chart, Meter, type Level } from '../charts.tsx'
import { Card, Empty, Loading } from '../parts.tsx'
import { useSection } from '../store.ts'
import { Table, type Column } from '../table.tsx'
import { Tuner } from './tuner.tsx'

export function StorageView(): preact.JSX.Element {
  const storage = useSection('storage')
  const run = useSection('run')
  if (!storage || !run) return <Loading />
  if (storage.devices.length === 0)
    return (
      <Empty>
        This run knows of no device. Describe the machine and its storage in a file, and give it by{' '}
        <code>--machine</code>.
      </Empty>
    )
  return <Storage storage={storage} run={run} />
}

export function Storage({ storage, run }: { storage: StorageSection; run: RunSection }): preact.JSX.Element {
  const { flush, prefetch, failed, dropped } = storage.moved
  const hasMoves = flush.files + prefetch.files + storage.moving.length + failed + dropped > 0
  return (
    <div class="storage">
      {storage.devices.map(device => (
        <Device key={device.name} device={device} run={run} />
      ))}
      {storage.tuners.map(tuner => (
        <Tuner key={`${tuner.kind}/${tuner.device}`} tuner={tuner} isOver={run.state !== 'running'} />
      ))}
      {hasMoves ? (
        <Card
          title="Moves between devices"
          aside={[
            `flushed ${plural(flush.files, 'file')}, ${formatBytes(flush.bytes)}`,
            ...(prefetch.files > 0
              ? [`fetched ${plural(prefetch.files, 'file')}, ${formatBytes(prefetch.bytes)}`]
              : []),
            ...(failed > 0 ? [`${formatCount(failed)} failed`] : []),
            ...(dropped > 0 ? [`${formatCount(dropped)} not needed any more`] : []),
          ].join(' · ')}
        >
          <Table
            name="Moves between devices"
            columns={MOVES}
            rows={[...storage.moving, ...storage.recent].slice(0, 20)}
            keyOf={(_move, i) => i}
          />
        </Card>
      ) : storage.devices.length > 1 ? (
        <Card title="Moves between devices">
          <p class="hint">{noMoves(storage, run)}</p>
        </Card>
      ) : null}
    </div>
  )
}

/** Why nothing moved, and what would make it move. */
function noMoves({ io }: StorageSection, { state }: RunSection): string {
  const moved = state === 'running' ? 'Nothing has moved so far.' : 'Nothing moved while the run went on.'
  if (io === null) return moved
  const flush =
    io.flush === 'off'
      ? 'Files that no task reads stay where they are until the end: --flush always or idle moves them earlier.'
      : `Files that no task reads are moved to slower devices: --flush ${io.flush}.`
  const prefetch = io.prefetch ? ' Files that ready tasks will read are fetched to faster ones.' : ''
  return `${moved} ${flush}${prefetch}`
}

const rate = (value: number): string => `${formatBytes(value)}/s`

function Device({ device, run }: { device: DeviceRow; run: RunSection }): preact.JSX.Element {
  const until = run.elapsed
  const isOver = run.state !== 'running'
  const level = (name: string, value: number | null): Level[] =>
    value !== null && value > 0 ? [{ name, value }] : []
  const place = device.node === null ? 'shared' : device.node
  const hasRead = device.limitRead !== null || device.peakRead > 0
  return (
    <Card
      title={device.name}
      class={`device${device.failure === null ? '' : ' broken'}`}
      aside={`${device.path} · ${place} · ${plural(device.running, 'task')} on it, ${formatCount(device.waiting)} waiting`}
    >
      {device.failure === null ? null : (
        <p class="message bad">
          <b>✕ left out:</b> {device.failure}
        </p>
      )}
      <div class="device-charts">
        <Chart
          title="writes"
          lines={[
            { name: 'written', points: device.written, tone: 'one', isArea: true },
            { name: 'reserved by tasks', points: device.givenWrite, tone: 'two' },
          ]}
          levels={[...level('limit', device.limitWrite), ...level('measured peak', device.peakWrite)]}
          format={rate}
          until={until}
          isOver={isOver}
        />
        {hasRead ? (
          <Chart
            title="reads"
            lines={[
              { name: 'read', points: device.read, tone: 'one', isArea: true },
              { name: 'reserved by tasks', points: device.givenRead, tone: 'two' },
            ]}
            levels={[...level('limit', device.limitRead), ...level('measured peak', device.peakRead)]}
            format={rate}
            until={until}
            isOver={isOver}
          />
        ) : null}
        <Chart
          title="queue"
          lines={[{ name: 'tasks waiting', points: device.queue, tone: 'three', isArea: true }]}
          format={value => String(Math.round(value * 10) / 10)}
          until={until}
          isOver={isOver}
          atLeast={1}
        />
      </div>
      <div class="room">
        {device.capacity === null ? (
          <Meter label="room" share={0} text={`${formatBytes(device.used)} taken, no bound is known`} />
        ) : (
          <Meter
            label="room"
            share={device.used / device.capacity}
            tone={device.used > device.capacity * 0.9 ? 'bad' : ''}
            text={`${formatBytes(device.used)} of ${formatBytes(device.capacity)}, ${formatPercent(device.used / device.capacity)}`}
          />
        )}
        {device.content.length === 0 ? null : (
          <ul class="content" aria-label={`What lies on ${device.name}`}>
            {device.content.map(({ kind, files, bytes }) => (
              <li key={kind}>
                <b>{kind}</b> {plural(files, 'file')}, {formatBytes(bytes)}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  )
}

const MOVE_WORDS = {
  started: ', moving',
  done: '',
  failed: ' failed',
  dropped: ', not needed any more',
} as const

const MOVES: Column<MoveRow>[] = [
  { title: 'file', class: 'name', cell: move => move.file },
  {
    title: 'what',
    cell: move => (
      <>
        {move.phase === 'failed' ? <span class="bad">✕ </span> : null}
        {`${move.why}${MOVE_WORDS[move.phase]}`}
        {move.phase === 'failed' && move.reason !== null ? `: ${move.reason}` : ''}
      </>
    ),
  },
  { title: 'from', cell: move => move.from },
  { title: 'to', cell: move => move.to },
  { title: 'size', isNumber: true, cell: move => formatBytes(move.bytes) },
  { title: 'at', isNumber: true, cell: move => formatDuration(move.at) },
]
