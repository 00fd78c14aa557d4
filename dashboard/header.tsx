import { useState } from 'preact/hooks'
import type { RunSection } from '../src/report/dashboard/protocol.ts'
import { formatCount, formatDuration, formatPercent } from '../src/report/format.ts'
import { Find } from './find.tsx'
import { useConnection, useSection, useStore } from './store.ts'
import { chooseTheme, chosenTheme, type Theme } from './theme.ts'

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
        {run ? <StateBadge state={run.state} /> : null}
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
    </header>
  )
}

export function StateBadge({ state }: { state: RunSection['state'] }): preact.JSX.Element {
  const { word, shape, tone } = RUN_STATES[state]
  return (
    <span class={`badge ${tone}`} role="status">
      <span aria-hidden="true">{shape}</span> {word}
    </span>
  )
}

function Progress({ run }: { run: RunSection }): preact.JSX.Element {
  const share = run.submitted > 0 ? run.ended / run.submitted : 0
  const text = `${formatCount(run.ended)} of ${formatCount(run.submitted)} tasks`
  return (
    <div class="progress">
      <div
        class="bar"
        role="progressbar"
        aria-label={text}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
      >
        <span style={{ width: `${share * 100}%` }} class={run.failed > 0 ? 'bad' : ''} />
      </div>
      <span class="numbers">
        <b>{formatPercent(share)}</b> {text} · {formatDuration(run.elapsed)}
        {run.isCaughtUp ? '' : ' · reading the journal …'}
      </span>
    </div>
  )
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
