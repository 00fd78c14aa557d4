import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { addressLines } from '../report/dashboard/address.ts'
import type { ControlAnswer, ControlOrder } from '../report/dashboard/protocol.ts'
import type { DashboardAnswer, DashboardOrder, DashboardReply } from '../report/dashboard/process.ts'

/** The process beside the bundles, or in dist/ when this runs from its sources. */
const PLACES = ['./dashboard-process.js', '../../dist/dashboard-process.js']

export interface Dashboard {
  /** What carries out orders of pages, once the run is there; null where pages may only look. */
  carryOut: ((order: ControlOrder) => ControlAnswer) | null
  /** Called when the page ends before the run: then no user could take back what was asked on it. */
  onGone: (() => void) | null
  /** Told when the first page is open, and when the last has gone. */
  onWatched: ((isWatched: boolean) => void) | null
  /** Lets it send the end of the run to its pages, and end. */
  end(): void
}

/** Starts the page of this run in a process of its own, which reads the journal. `say` gets its address, or what is wrong. */
export function startDashboard(order: DashboardOrder, say: (lines: string[]) => void): Dashboard {
  const path = PLACES.map(place => fileURLToPath(new URL(place, import.meta.url))).find(existsSync)
  const dashboard: Dashboard = { carryOut: null, onGone: null, onWatched: null, end: () => {} }
  if (path === undefined) {
    say(['dashboard    there is no page in this installation: build it with `npm run build`'])
    return dashboard
  }
  const child = fork(path, [JSON.stringify(order)], { execArgv: [], stdio: 'ignore' })
  // The run neither waits for it nor fails with it.
  child.unref()
  child.channel?.unref()
  child.on('error', error => say([`dashboard    it did not start: ${error.message}`]))
  child.on('disconnect', () => dashboard.onGone?.())
  child.on('message', message => {
    const reply = message as DashboardReply
    if ('url' in reply) say(addressLines(reply))
    else if ('isWatched' in reply) dashboard.onWatched?.(reply.isWatched)
    else if ('problem' in reply) say([`dashboard    ${reply.problem}`])
    else {
      const answer = dashboard.carryOut?.(reply.order) ?? { problem: 'The run takes no orders.' }
      child.send({ id: reply.id, answer } satisfies DashboardAnswer)
    }
  })
  dashboard.end = () => {
    dashboard.onGone = null
    dashboard.onWatched = null
    if (child.connected) child.disconnect()
  }
  return dashboard
}
