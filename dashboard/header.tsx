import { useState } from 'preact/hooks'
import type { RunSection } from '../src/report/dashboard/protocol.ts'
import { formatCount, formatDuration, formatPercent } from '../src/report/format.ts'
import { RunControls } from './control.tsx'
import { Find } from './find.tsx'
import { useConnection, useSection, useStore } from './store.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

/** A page that is less behind is up to date for people. */
const LAG_MS = 2000

export const RUN_STATES: Record<RunSection['state'], { word: string; shape: string; tone: string }> = {
  running: { word: 'running', shape: '▶', tone: 'live' },
  ok: { word: 'done', shape: '✓', tone: 'good' },
  failed: { word: 'failed', shape: '✕', tone: 'bad' },
  interrupted: { word: 'interrupted', shape: '⊘', tone: 'warn' },
  killed: { word: 'killed', shape: '✕', tone: 'bad' },
}

/** What is always seen: which run, how far it is, and whether the page still hears of it. */
export function Header({ onHelp }: { onHelp: () => void }): preact.JSX.Element {
  const run = useSection('run')
  const { source } = useStore()
  return (
    <header class="top">
      <div class="who">
        <span class="mark" aria-hidden="true">
          ≋
        </span>
        <h1>
          {run?.name || 'Millrace'}
          {run?.simulated ? <span class="tag">simulated</span> : null}
        </h1>
        {run ? (
          <StateBadge
            state={run.state}
            isPaused={run.isPaused}
            isReading={!run.isCaughtUp && run.behind === 0 && run.state === 'running'}
          />
        ) : null}
        <ConnectionNote />
      </div>
      {run ? <Progress run={run} /> : null}
      <div class="tools">
        {source.isLive ? <Find /> : null}
        <ThemeButton />
        <button type="button" class="plain" aria-label="Keys" title="Keys (?)" onClick={onHelp}>
          ?
        </button>
      </div>
      {run ? <RunControls run={run} /> : null}
    </header>
  )
}

export function StateBadge({
  state,
  isPaused = false,
  isReading = false,
}: {
  state: RunSection['state']
  isPaused?: boolean
  /** Not all of the journal has been read: whether the run goes on is not known yet. */
  isReading?: boolean
}): preact.JSX.Element {
  const { word, shape, tone } = isReading
    ? { word: 'reading', shape: '…', tone: '' }
    : isPaused
      ? { word: 'paused', shape: '‖', tone: 'warn' }
      : RUN_STATES[state]
  return (
    <span class={`badge ${tone}`} role="status">
      <span aria-hidden="true">{shape}</span> {word}
    </span>
  )
}

function Progress({ run }: { run: RunSection }): preact.JSX.Element {
  const { submitted, done, failed, ignored, cancelled } = run.counts
  const ended = done + failed + ignored + cancelled
  const share = submitted > 0 ? ended / submitted : 0
  const width = (count: number): string => `${(count / Math.max(1, submitted)) * 100}%`
  const text = `${formatCount(ended)} of ${formatCount(submitted)} tasks`
  return (
    <div class="progress">
      <div
        class="bar stack"
        role="progressbar"
        aria-label={text}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <span class="done" style={{ width: width(done) }} />
        <span class="failed" style={{ width: width(failed + ignored) }} />
        <span class="cancelled" style={{ width: width(cancelled) }} />
      </div>
      <span class="numbers">
        <b>{formatPercent(share)}</b> {text} · {formatDuration(run.elapsed)}
        {readingText(run)}
      </span>
    </div>
  )
}

function readingText({ isCaughtUp, behind }: RunSection): string {
  if (isCaughtUp || (behind > 0 && behind < LAG_MS)) return ''
  if (behind === 0) return ' · reading the journal …'
  return ` · ${formatDuration(behind)} behind: the page takes at most 1% of the CPUs from the run`
}

function ConnectionNote(): preact.JSX.Element | null {
  const connection = useConnection()
  const run = useSection('run')
  if (connection === 'lost')
    return (
      <span class="badge warn" role="alert">
        connection lost, trying again
      </span>
    )
  if (connection === 'ended')
    return (
      <span class="badge" role="status">
        open it again: <code>millrace dashboard {run?.name}</code>
      </span>
    )
  return null
}

function ThemeButton(): preact.JSX.Element {
  const [theme, setTheme] = useState<Theme>(chosenTheme)
  const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }
  const shape: Record<Theme, string> = { system: '◐', light: '☀', dark: '☾' }
  return (
    <button
      type="button"
      class="plain"
      aria-label={`Colours: ${theme}`}
      title={`Colours: ${theme}`}
      onClick={() => {
        chooseTheme(next[theme])
        setTheme(next[theme])
      }}
    >
      {shape[theme]}
    </button>
  )
}
