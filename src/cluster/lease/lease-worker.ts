import { Worker } from 'node:worker_threads'
import type { AnswerOptions, LeaseNews, LeaseOrder } from './answer-leases.ts'
import type { LeaseThreadData } from './lease-thread.ts'
import type { RenewNews, RenewOptions } from './renew-lease.ts'

function start<News>(data: LeaseThreadData, heard: (news: News) => void): Worker {
  const worker = new Worker(new URL('./lease-thread.js', import.meta.url), { workerData: data, execArgv: [] })
  worker.on('error', () => undefined)
  worker.on('message', heard)
  // A listener keeps the process alive, so this comes last.
  worker.unref()
  return worker
}

/** The agent's thread that renews its lease; calls once if the agent has to end. */
export function startRenewing(options: RenewOptions, over: (reason: string) => void): void {
  start({ role: 'agent', options }, (news: RenewNews) => {
    if (news.type === 'over') over(news.reason)
  })
}

/** The coordinator's thread that answers agents which renew their leases. */
export interface LeaseAnswers {
  order(order: LeaseOrder): void
  end(): void
}

export function startAnswering(options: AnswerOptions, heard: (news: LeaseNews) => void): LeaseAnswers {
  const worker = start({ role: 'coordinator', options }, heard)
  return {
    order: order => worker.postMessage(order),
    end: () => void worker.terminate(),
  }
}
