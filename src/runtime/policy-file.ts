import { messageOf } from '../general/thrown.ts'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import type { Policy } from '../core/schedule/policy.ts'

export const isPolicyFile = (policy: string): boolean => /[\\/]|\.[cm]?[jt]s$/.test(policy)

/** The policy that a module exports by default. */
export async function loadPolicyFile(path: string, enableTypescript: () => Promise<void>): Promise<Policy> {
  if (!existsSync(path)) {
    throw new MillraceError('MR_POLICY', `there is no file ${path}, which was to be the policy`, {
      hint: `Its path is relative to ${process.cwd()}.`,
    })
  }
  if (/\.[cm]?ts$/.test(path)) await enableTypescript()
  const { default: found } = (await import(pathToFileURL(resolve(path)).href).catch((error: unknown) => {
    const [reason = ''] = messageOf(error).split('\n')
    throw new MillraceError('MR_POLICY', `policy ${path} could not be loaded: ${reason}`, { cause: error })
  })) as { default?: Policy | { default?: Policy } }
  // A CommonJS module has its exports under `default` once more.
  const policy = found && 'default' in found ? found.default : found
  if (typeof (policy as Policy | undefined)?.score !== 'function') {
    throw new MillraceError('MR_POLICY', `${path} does not export a policy`, {
      hint: 'Its default export must be { name, score(task, situation) }.',
    })
  }
  return policy as Policy
}

const LAUNCHED = Symbol.for('millrace.policy')
const place = globalThis as { [LAUNCHED]?: Policy }

/**
 * The launcher loads a policy before the program, which may call tasks before anything can be waited for.
 * It is left in a global place because the program may have a copy of Millrace of its own.
 */
export function launchWithPolicy(policy: Policy): void {
  place[LAUNCHED] = policy
}

export const launchedPolicy = (): Policy | null => place[LAUNCHED] ?? null
