/** One line of the table: what a paper found, and what we find. */
export interface Row {
  experiment: string
  /** The paper's number. */
  paper: string
  /** With the policies of the paper, and with ours. */
  ours: string
  better: string
  /** Of a curve: whether its turning point falls on the same value. */
  turning: string
  /** Whether the published gain is reached and the turning point is the same; null where the text gives neither a number nor a finding. */
  met: boolean | null
  /** How far ours is from the paper's number, in either direction; where the paper gives one. */
  off?: string
  /** It is reached, and so much more was found than published that the model is not the paper's machine. */
  isBeyond?: boolean
  /** A constant that no paper states was chosen so that this row comes out as it does. */
  fitted?: true
}

/** How far a share is from a published one, in points of a percent. */
export function points(published: number, ours: number): string {
  const off = Math.round((ours - published) * 100)
  return `${off > 0 ? '+' : ''}${off} points`
}

/** How far a number is from a published one, in parts of that. */
export function parts(published: number, ours: number): string {
  const off = Math.round((ours / published - 1) * 100)
  return `${off > 0 ? '+' : ''}${off}%`
}

export const percent = (share: number): string => `${(share * 100).toFixed(0)}%`

/** The constraint at which a curve is lowest; among equals the highest, as in the papers: it congests least. */
export function lowest(curve: ReadonlyMap<number, number>): number {
  const best = Math.min(...curve.values())
  return Math.max(...[...curve.keys()].filter(key => (curve.get(key) as number) <= best * EQUAL))
}

/** Times that differ by less than this are equal. */
const EQUAL = 1.001

/** A gain that is larger than the published one by more than this is no agreement. */
const BEYOND = 0.1

export const isBeyond = (published: number, ours: number): boolean => ours > published + BEYOND

/** What the last column says. */
export function verdictOf({ met, isBeyond: beyond, fitted }: Row): string {
  const verdict = met === null ? 'no number' : met ? (beyond ? 'MORE' : 'yes') : 'NO'
  return fitted ? `${verdict} (fitted)` : verdict
}
