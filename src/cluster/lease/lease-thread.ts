import { parentPort, workerData } from 'node:worker_threads'
import { answerLeases } from './answer-leases.ts'
import type { AnswerOptions } from './answer-leases.ts'
import { renewLease } from './renew-lease.ts'
import type { RenewOptions } from './renew-lease.ts'

/** Leases have a thread that does nothing else: neither a program that computes nor a full pipe makes a side look dead. */
export type LeaseThreadData =
  | { readonly role: 'coordinator'; readonly options: AnswerOptions }
  | { readonly role: 'agent'; readonly options: RenewOptions }

const data = workerData as LeaseThreadData
if (parentPort) {
  if (data.role === 'coordinator') await answerLeases(data.options, parentPort)
  else await renewLease(data.options, parentPort)
}
