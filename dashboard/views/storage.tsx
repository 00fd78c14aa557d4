import type { DeviceRow, MoveRow, StorageSection, TunerRow } from '../../src/report/dashboard/protocol.ts'
import { formatBytes, formatCount, formatDuration, formatPercent, plural } from '../../src/report/format.ts'
import { Chart, Meter, type Level } from '../charts.tsx'
import { Card, Empty, Loading } from '../parts.tsx'
import { useSection } from '../store.ts'

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
  return <Storage storage={storage} until={run.elapsed} />
}

export function Storage({ storage, until }: { storage: StorageSection; until: number }): preact.JSX.Element {
  const { flush, prefetch, failed } = storage.moved
  return (
    <div class="storage">
      {storage.devices.map(device => (
        <Device key={device.name} device={device} until={until} />
      ))}
      {storage.tuners.map(tuner => (
        <Tuner key={`${tuner.kind}/${tuner.device}`} tuner={tuner} />
      ))}
      {flush.files + prefetch.files + storage.moving.length + failed > 0 ? (
        <Card
          title="Moves between devices"
          aside={`flushed ${plural(flush.files, 'file')}, ${formatBytes(flush.bytes)} · fetched ${plural(prefetch.files, 'file')}, ${formatBytes(prefetch.bytes)}${failed > 0 ? ` · ${failed} failed` : ''}`}
        >
          <Moves moves={[...storage.moving, ...storage.recent].slice(0, 20)} />
        </Card>
      ) : null}
    </div>
  )
}

const rate = (value: number): string => `${formatBytes(value)}/s`

function Device({ device, until }: { device: DeviceRow; until: number }): preact.JSX.Element {
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
            { name: 'given out', points: device.givenWrite, tone: 'two' },
          ]}
          levels={[...level('limit', device.limitWrite), ...level('measured peak', device.peakWrite)]}
          format={rate}
          until={until}
        />
        {hasRead ? (
          <Chart
            title="reads"
            lines={[
              { name: 'read', points: device.read, tone: 'one', isArea: true },
              { name: 'given out', points: device.givenRead, tone: 'two' },
            ]}
            levels={[...level('limit', device.limitRead), ...level('measured peak', device.peakRead)]}
            format={rate}
            until={until}
          />
        ) : null}
        <Chart
          title="queue"
          lines={[{ name: 'tasks waiting', points: device.queue, tone: 'three', isArea: true }]}
          format={value => String(Math.round(value * 10) / 10)}
          until={until}
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

/** Time per task against how many ran at one time: what was tried, and what was taken. */
function Tuner({ tuner: { kind, device, trials, verdict } }: { tuner: TunerRow }): preact.JSX.Element {
  const most = Math.max(...trials.map(trial => trial.concurrency), verdict?.concurrency ?? 1, 1)
  const slowest = Math.max(...trials.map(trial => trial.mean), 1)
  const x = (concurrency: number): number => 40 + (Math.log2(concurrency + 1) / Math.log2(most + 1)) * 520
  const y = (mean: number): number => 130 - (mean / slowest) * 105
  const sorted = trials.toSorted((a, b) => a.concurrency - b.concurrency || a.at - b.at)
  const told = verdict
    ? `${verdict.concurrency} at a time, ${rate(verdict.bandwidth)} each`
    : `${plural(trials.length, 'trial')} so far`
  return (
    <Card title={`Limit of ${kind} on ${device}`} aside={told} class="tuner">
      {trials.length === 0 ? null : (
        <svg
          viewBox="0 0 600 160"
          role="img"
          aria-label={`Trials: ${sorted.map(trial => `${trial.concurrency} at a time ${formatDuration(trial.mean)} per task`).join(', ')}`}
        >
          <line class="grid" x1={40} x2={590} y1={130} y2={130} />
          {verdict ? (
            <line class="level" x1={x(verdict.concurrency)} x2={x(verdict.concurrency)} y1={12} y2={130} />
          ) : null}
          {sorted.map(({ concurrency, mean, at }) => {
            const isTaken = concurrency === verdict?.concurrency
            return (
              <g key={at} class={isTaken ? 'taken' : 'tried'}>
                {isTaken ? (
                  <rect
                    x={x(concurrency) - 5}
                    y={y(mean) - 5}
                    width={10}
                    height={10}
                    transform={`rotate(45 ${x(concurrency)} ${y(mean)})`}
                  />
                ) : (
                  <circle cx={x(concurrency)} cy={y(mean)} r={4.5} />
                )}
                <text x={x(concurrency)} y={y(mean) - 10} text-anchor="middle">
                  {formatDuration(mean)}
                </text>
                <text x={x(concurrency)} y={147} text-anchor="middle">
                  {concurrency}
                </text>
              </g>
            )
          })}
          <text x={590} y={158} text-anchor="end" class="axis">
            tasks at one time
          </text>
          <text x={4} y={12} class="axis">
            time per task
          </text>
        </svg>
      )}
      {verdict ? (
        <p class="hint">
          ◆ {verdict.reason}
          {verdict.learned > 0 ? `; learned from ${plural(verdict.learned, 'task')}` : ''}
        </p>
      ) : (
        <p class="hint">No verdict yet.</p>
      )}
    </Card>
  )
}

function Moves({ moves }: { moves: readonly MoveRow[] }): preact.JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Moves, a table">
      <table>
        <thead>
          <tr>
            <th scope="col">at</th>
            <th scope="col">what</th>
            <th scope="col">file</th>
            <th scope="col">from</th>
            <th scope="col">to</th>
            <th scope="col" class="number">
              size
            </th>
          </tr>
        </thead>
        <tbody>
          {moves.map((move, i) => (
            <tr key={i}>
              <td>{formatDuration(move.at)}</td>
              <td>
                {move.why}
                {move.phase === 'started' ? ', moving' : move.phase === 'failed' ? ', failed' : ''}
              </td>
              <td class="name">{move.file}</td>
              <td>{move.from}</td>
              <td>{move.to}</td>
              <td class="number">{formatBytes(move.bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
