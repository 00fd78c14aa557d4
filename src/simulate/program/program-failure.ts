import { isError, messageOf, nameOf, textFieldOf } from '../../general/thrown.ts'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../core/errors.ts'

const FRAMES = 4
const OWN = dirname(fileURLToPath(import.meta.url))

/** What the program itself threw, with where in it; what Millrace threw stays as it is. */
export function programFailure(name: string, error: unknown): unknown {
  const code = (error as { code?: unknown } | null)?.code
  if (typeof code === 'string' && code.startsWith('MR_')) return error
  const what = isError(error) ? `${nameOf(error)}: ${messageOf(error)}` : messageOf(error)
  const stack = textFieldOf(error, 'stack') ?? ''
  const frames = stack
    .split('\n')
    .filter(line => /^\s+at /.test(line) && !line.includes(OWN) && !/\(?node:/.test(line))
    .slice(0, FRAMES)
  return new MillraceError('MR_SIMULATION', [`${name} failed: ${what}`, ...frames].join('\n'), {
    hint: 'The program runs in a simulation too, only its tasks do not: what they return is `cost.returns`.',
    cause: error,
  })
}
