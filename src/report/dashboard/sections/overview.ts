import { cleanLines, clean } from '../../text.ts'
import { finding } from '../../statistics/finding.ts'
import type { KindStatistics } from '../../statistics/statistics-kind.ts'
import type { RunModel } from '../state/run-model.ts'
import type { Counts, FailuresSection, KindRow, OverviewSection } from '../protocol.ts'

/** Kinds that have a row. */
const SHOWN_KINDS = 200
const SHOWN_REASONS = 8
const SHOWN_TASKS = 8

export function overviewSection(model: RunModel, now: number): OverviewSection {
  const { statistics } = model
  const { total } = statistics
  const kinds = [...statistics.kinds.values()].filter(kind => kind.submitted > 0)
  kinds.sort((a, b) => b.busyMs - a.busyMs || b.submitted - a.submitted || a.kind - b.kind)
  const isOver = statistics.outcome !== null
  const found = finding(statistics)
  return {
    counts: countsOf(total),
    retried: total.retried,
    eta: isOver ? null : statistics.eta(now),
    parallelism: statistics.parallelism,
    cpusBusy: model.nodes.reduce((sum, node) => sum + node.cpusNow, 0),
    cpusIdleShare: statistics.idleShare,
    busy: model.running.points(now),
    kinds: kinds.slice(0, SHOWN_KINDS).map(kind => kindRow(kind, model)),
    kindsLeftOut: Math.max(0, kinds.length - SHOWN_KINDS),
    waits: {
      inputs: total.waiting,
      cpu: Math.max(0, total.ready - model.readyIo.all),
      device: model.readyIo.all - model.readyIo.forRoom,
      room: model.readyIo.forRoom,
      called: total.blocked,
    },
    reasons: [...model.waits]
      .filter(([task]) => model.tasks.stateOf(task) === 'ready')
      .slice(0, SHOWN_REASONS)
      .map(([task, reason]) => ({ task, name: clean(model.taskName(task)), reason: clean(reason) })),
    slowest: statistics.slowest(SHOWN_TASKS).map(({ task, startedAt }) => ({
      task,
      name: clean(model.taskName(task)),
      ms: Math.max(0, now - startedAt),
    })),
    findings: [
      ...(statistics.standstill === null ? [] : [clean(statistics.standstill)]),
      ...(found === null ? [] : [found]),
      ...statistics.devices.verdicts(),
    ],
    warnings: [...statistics.warningTexts].map(clean),
    notes: model.notes.slice(-20).map(({ at, level, text }) => ({ at, level, text: clean(text) })),
  }
}

export function countsOf(kind: KindStatistics): Counts {
  const { submitted, waiting, ready, running, blocked, done, failed, ignored, cancelled } = kind
  return { submitted, waiting, ready, running, blocked, done, failed, ignored, cancelled }
}

function kindRow(kind: KindStatistics, model: RunModel): KindRow {
  const durations = model.durations.get(kind.kind)
  const left = kind.waiting + kind.ready + kind.blocked + kind.running / 2
  const { parallelism } = model.statistics
  const mean = durations?.mean ?? 0
  return {
    kind: kind.kind,
    name: clean(kind.name),
    form: model.kinds.get(kind.kind)?.form ?? 'function',
    ...countsOf(kind),
    retried: kind.retried,
    busyMs: kind.busyMs,
    mean,
    median: durations?.quantile(0.5) ?? 0,
    p95: durations?.quantile(0.95) ?? 0,
    longest: kind.longestMs,
    eta: left > 0 && mean > 0 && parallelism > 0 ? (left * mean) / parallelism : null,
    peakBytes: kind.peakBytes,
    readBytes: kind.readBytes,
    writtenBytes: kind.writtenBytes,
    histogram: durations?.histogram() ?? { from: 0, counts: [] },
  }
}

export function failuresSection({ statistics }: RunModel): FailuresSection {
  return {
    count: statistics.failureCount,
    failures: statistics.failures.map(({ task, at, attempt, failure, log }) => ({
      task,
      name: clean(statistics.failedName(task)),
      at,
      attempt,
      cause: cleanLines(`${failure.name}: ${failure.message}`).join('\n') + codeText(failure.code),
      stack: cleanLines(failure.stack ?? '').slice(0, 12),
      command: failure.command === undefined ? null : clean(failure.command),
      cwd: failure.cwd === undefined ? null : clean(failure.cwd),
      tail: cleanLines(failure.tail ?? ''),
      tailCut: failure.tailCut ?? null,
      log: log === undefined ? null : clean(log),
    })),
  }
}

const codeText = (code: string | undefined): string => (code === undefined ? '' : ` [${clean(code)}]`)
