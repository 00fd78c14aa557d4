import type { LinkLine, NodesLine, WaitLine } from '../board/snapshot.ts'
import { byteText } from './progress.ts'

const WRITTEN_BY = ', written by '

/** Who waits for which byte of which file, and where the steps are that write it. */
export function waitText({ sentence, for: what, at, on }: WaitLine, nodes: NodesLine | undefined): string {
  const begin = sentence.lastIndexOf(WRITTEN_BY)
  const text = begin < 0 ? sentence : sentence.slice(0, begin)
  const byte = what === 'data' && at !== null ? `, from byte ${at}` : ''
  const writers = (on ?? []).map(step => {
    const places = nodes && Object.hasOwn(nodes.places, step) ? (nodes.places[step] ?? []) : []
    return places.length === 0 ? step : `${step} on ${places.join(' and ')}`
  })
  return `${text}${byte}${writers.length === 0 ? '' : `${WRITTEN_BY}${writers.join(', ')}`}`
}

export function linkText({ from, to, byCoordinator, bytes, rate }: LinkLine): string {
  const way = byCoordinator ? ' through the coordinator' : ''
  return `${from} → ${to}${way}: ${byteText(bytes)} sent, ${byteText(rate)}/s`
}
