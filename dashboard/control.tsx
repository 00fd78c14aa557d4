import { useEffect, useState } from 'preact/hooks'
import type {
  ControlAnswer,
  ControlRequest,
  RunSection,
  TaskFacts,
} from '../src/report/dashboard/protocol.ts'
import { useStore } from './store.ts'

/** Whether this page may act on the run. Its address says so, and the server is asked once. */
export function useMayControl(): boolean {
  const { source } = useStore()
  const [isAllowed, setAllowed] = useState(false)
  useEffect(() => {
    source.mayControl().then(setAllowed, () => {})
  }, [source])
  return isAllowed
}

/** Sends an order, and says what came of it. */
function useControl(): [told: string, isBusy: boolean, send: (request: ControlRequest) => void] {
  const { source } = useStore()
  const [told, setTold] = useState('')
  const [isBusy, setBusy] = useState(false)
  const send = (request: ControlRequest): void => {
    setBusy(true)
    source
      .control(request)
      .then(
        (answer: ControlAnswer) => setTold('done' in answer ? answer.done : answer.problem),
        (error: unknown) => setTold(`It was not done: ${String(error)}`),
      )
      .finally(() => setBusy(false))
  }
  return [told, isBusy, send]
}

/** A button that asks once more before it does what cannot be undone. */
function SureButton({
  text,
  sure,
  isBusy,
  onSure,
}: {
  text: string
  sure: string
  isBusy: boolean
  onSure: () => void
}): preact.JSX.Element {
  const [isAsking, setAsking] = useState(false)
  if (!isAsking)
    return (
      <button type="button" class="danger" disabled={isBusy} onClick={() => setAsking(true)}>
        {text}
      </button>
    )
  return (
    <span class="sure" role="group" aria-label={sure}>
      <span>{sure}</span>
      <button
        type="button"
        class="danger"
        disabled={isBusy}
        onClick={() => {
          setAsking(false)
          onSure()
        }}
      >
        Yes
      </button>
      <button type="button" onClick={() => setAsking(false)}>
        No
      </button>
    </span>
  )
}

/** Pause, go on and stop, for the whole run. */
export function RunControls({ run }: { run: RunSection }): preact.JSX.Element | null {
  const mayControl = useMayControl()
  const [told, isBusy, send] = useControl()
  if (!mayControl || run.state !== 'running') return null
  return (
    <div class="controls">
      <button
        type="button"
        disabled={isBusy}
        onClick={() => send({ action: run.isPaused ? 'go-on' : 'pause' })}
      >
        {run.isPaused ? '▶ Go on' : '‖ Pause'}
      </button>
      <SureButton
        text="Stop the run"
        sure="Cancel what has not begun?"
        isBusy={isBusy}
        onSure={() => send({ action: 'stop' })}
      />
      <span class="told" role="status">
        {told}
      </span>
    </div>
  )
}

/** Cancel and priority, for one task. */
export function TaskControls({ facts }: { facts: TaskFacts }): preact.JSX.Element | null {
  const mayControl = useMayControl()
  const [told, isBusy, send] = useControl()
  const [priority, setPriority] = useState(String(facts.priority))
  const [isForKind, setForKind] = useState(false)
  const hasEnded = ['done', 'failed', 'ignored', 'cancelled'].includes(facts.state)
  if (!mayControl || hasEnded) return null
  const hasBegun = facts.state === 'running' || facts.state === 'blocked'
  const value = Number(priority)
  return (
    <div class="controls task-controls">
      <SureButton
        text="Cancel task"
        sure="Cancel it, and what needs it?"
        isBusy={isBusy}
        onSure={() => send({ action: 'cancel', task: facts.task })}
      />
      {hasBegun ? null : (
        <form
          onSubmit={event => {
            event.preventDefault()
            send({ action: 'priority', task: facts.task, priority: value, isForKind })
          }}
        >
          <label>
            Priority{' '}
            <input
              type="number"
              value={priority}
              onInput={event => setPriority(event.currentTarget.value)}
              aria-describedby="priority-hint"
            />
          </label>
          <label>
            <input
              type="checkbox"
              checked={isForKind}
              onChange={event => setForKind(event.currentTarget.checked)}
            />{' '}
            all of its kind
          </label>
          <button type="submit" disabled={isBusy || priority.trim() === '' || !Number.isFinite(value)}>
            Set
          </button>
          <small id="priority-hint">The highest runs first. Tasks have 0 unless they say otherwise.</small>
        </form>
      )}
      <p class="told" role="status">
        {told}
      </p>
    </div>
  )
}
