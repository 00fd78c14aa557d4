import type { IncomingMessage } from 'node:http'
import type { ControlAction } from '../../core/events.ts'
import type { ControlRequest } from './protocol.ts'

const ACTIONS: readonly ControlAction[] = ['pause', 'go-on', 'stop', 'cancel', 'priority']
const MOST_BYTES = 4096

/**
 * Why the request is not one of our own page, or null. The token is not all: another site must not be able to send one, even
 * if it has seen the address. Browsers ask before they send such a header, or this type, to another site, and get no answer.
 */
export function isForged({ headers }: IncomingMessage): string | null {
  if (headers['x-millrace-control'] !== '1') return 'The header X-Millrace-Control is missing.\n'
  if (headers['content-type'] !== 'application/json') return 'Only application/json is taken.\n'
  const from = headers['sec-fetch-site']
  return from === undefined || from === 'same-origin' ? null : 'It comes from another site.\n'
}

/** The request, or null if it is none. */
export async function readControl(request: IncomingMessage): Promise<ControlRequest | null> {
  let text = ''
  for await (const chunk of request) {
    text += String(chunk)
    if (text.length > MOST_BYTES) return null
  }
  try {
    return checked(JSON.parse(text) as Record<string, unknown>)
  } catch {
    return null
  }
}

function checked(given: Record<string, unknown> | null): ControlRequest | null {
  const action = ACTIONS.find(one => one === given?.['action'])
  if (!given || !action) return null
  const { task, priority, isForKind } = given
  if (action !== 'cancel' && action !== 'priority') return { action }
  if (!Number.isSafeInteger(task)) return null
  if (action === 'cancel') return { action, task: task as number }
  if (typeof priority !== 'number' || !Number.isFinite(priority)) return null
  return { action, task: task as number, priority, isForKind: isForKind === true }
}
