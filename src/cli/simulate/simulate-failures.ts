import { MillraceError } from '../../core/errors.ts'
import { nearest } from '../../general/nearest.ts'
import { parseDuration } from '../../general/units.ts'
import type { FailureOptions } from '../../simulate/failures.ts'
import type { Platform } from '../../simulate/machine/platform.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'

/** What the command line says of nodes that are lost, end and are replaced; null where it says nothing. */
export function failuresOf(given: Given, { nodes }: Platform): FailureOptions | null {
  const lose = (given.values.get('lose-node') ?? []).map(text => {
    const at = text.lastIndexOf('@')
    const node = text.slice(0, Math.max(0, at))
    if (!nodes.some(({ name }) => name === node))
      refuseNode(
        text,
        node,
        nodes.map(({ name }) => name),
      )
    return { node, at: timeOf('lose-node', text.slice(at + 1)) }
  })
  const every = timeGiven(given, 'lose-every')
  const wallTime = timeGiven(given, 'wall-time')
  const replaceAfter = timeGiven(given, 'replace-after')
  if (lose.length === 0 && every === undefined && wallTime === undefined) return null
  return {
    lose,
    ...(every === undefined ? {} : { every }),
    ...(wallTime === undefined ? {} : { wallTime }),
    ...(replaceAfter === undefined ? {} : { replaceAfter }),
  }
}

function timeGiven(given: Given, option: string): number | undefined {
  const text = valueOf(given, option)
  return text === undefined ? undefined : timeOf(option, text)
}

function timeOf(option: string, text: string): number {
  const time = parseDuration(text)
  if (time !== null && time > 0) return time
  throw new MillraceError('MR_UNIT', `--${option}: '${text}' is not a time`, {
    hint: 'Write for instance 90s, 10min or 1h.',
  })
}

function refuseNode(text: string, node: string, names: readonly string[]): never {
  const close = nearest(node, names)
  const wrong = node === '' ? 'it names no node' : `the platform has no node '${node}'`
  throw new MillraceError(
    'MR_OPTION',
    `--lose-node ${text}: ${wrong}${close ? `; did you mean ${close}?` : ''}`,
    {
      hint: `Write for instance --lose-node ${names[0] ?? 'n1'}@90s.`,
    },
  )
}
