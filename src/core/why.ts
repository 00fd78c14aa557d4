/**
 * Why an attempt ended without a result and through no fault of its task. `lost`: with its thread, its program or what it
 * read. The others had not begun: they were called back from the lane on which they waited, and nothing was lost.
 */
export type ReturnWhy =
  | { readonly kind: 'behind-long-task' }
  | { readonly kind: 'cpu-is-free' }
  | { readonly kind: 'higher-priority' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'lost'; readonly what: string }

export type ReturnKind = ReturnWhy['kind']

export const lost = (what: string): ReturnWhy => ({ kind: 'lost', what })

/** Journals from before `why` was written have these sentences only, so they never change. */
const SENTENCES: Record<Exclude<ReturnKind, 'lost'>, string> = {
  'behind-long-task': 'what is before it on its CPU takes longer than expected',
  'cpu-is-free': 'a CPU was free sooner than the one on which it waited',
  'higher-priority': 'a task of higher priority came while it waited on its CPU',
  cancelled: 'it had not begun when all that had not was cancelled',
}

export const returnText = (why: ReturnWhy): string => (why.kind === 'lost' ? why.what : SENTENCES[why.kind])

/** Whether nothing was lost. Events of older journals have no `why`. */
export const hadNotBegun = ({ why, reason }: { why?: ReturnKind; reason: string }): boolean =>
  why === undefined ? Object.values(SENTENCES).includes(reason) : why !== 'lost'

/** Why a task is cancelled. */
export type CancelWhy =
  /** A task of its group failed, or the one that was to make what it reads. */
  | { readonly kind: 'failed'; readonly task: string }
  /** What it reads will never come. `task` was to make it, or is the reason why that never ran; null if it is not known. */
  | { readonly kind: 'input-cancelled'; readonly task: string | null }
  /** The run was closed before the task began. */
  | { readonly kind: 'closed'; readonly by: ClosedBy }
  /** Only this node could run it. */
  | { readonly kind: 'node-lost'; readonly node: string }
  /** Its group, or one around it. */
  | { readonly kind: 'group'; readonly group: string; readonly how: 'failed' | 'cancelled' }
  /** The task that called it ended before it. */
  | { readonly kind: 'caller-ended'; readonly caller: string }
  /** A generator whose values nothing takes. */
  | { readonly kind: 'unread' }
  /** A person did it, on the live page. */
  | { readonly kind: 'person'; readonly by: string }

export type CancelKind = CancelWhy['kind']

/** What closed a run. */
export type ClosedBy = 'interrupt' | 'program-failed' | 'nodes-lost'

const CLOSED: Record<ClosedBy, string> = {
  interrupt: 'the run was interrupted',
  'program-failed': 'the program failed',
  'nodes-lost': 'all nodes were lost',
}

export function cancelText(why: CancelWhy): string {
  switch (why.kind) {
    case 'failed':
      return `${why.task} failed`
    case 'input-cancelled':
      return `${why.task ?? 'something that it needs'} was cancelled`
    case 'closed':
      return CLOSED[why.by]
    case 'node-lost':
      return `node ${why.node} was lost, and no other node can run it`
    case 'group':
      return `group ${why.group} ${why.how === 'failed' ? 'failed' : 'was cancelled'}`
    case 'caller-ended':
      return `${why.caller}, which called it, ended`
    case 'unread':
      return 'nothing takes its values'
    case 'person':
      return `${why.by} cancelled it on the live page`
  }
}
