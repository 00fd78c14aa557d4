import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { addressLines } from '../report/dashboard/address.ts'
import type { DashboardOrder, DashboardReply } from '../report/dashboard/process.ts'

/** The process beside the bundles, or in dist/ when this runs from its sources. */
const PLACES = ['./dashboard-process.js', '../../dist/dashboard-process.js']

export interface Dashboard {
  /** Lets it send the end of the run to its pages, and end. */
  end(): void
}

/** Starts the page of this run in a process of its own, which reads the journal. `say` gets its address, or what is wrong. */
export function startDashboard(order: DashboardOrder, say: (lines: string[]) => void): Dashboard {
  const path = PLACES.map(place => fileURLToPath(new URL(place, import.meta.url))).find(existsSync)
  if (path === undefined) {
    say(['dashboard    there is no page in this installation: build it with `npm run build`'])
    return { end: () => {} }
  }
  const child = fork(path, [JSON.stringify(order)], { execArgv: [], stdio: 'ignore' })
  // The run neither waits for it nor fails with it.
  child.unref()
  child.channel?.unref()
  child.on('error', error => say([`dashboard    it did not start: ${error.message}`]))
  child.on('message', reply => {
    const answer = reply as DashboardReply
    say('url' in answer ? addressLines(answer.url) : [`dashboard    ${answer.problem}`])
  })
  return {
    end() {
      if (child.connected) child.disconnect()
    },
  }
}
