import type { AccessMode } from '../../core/data/datum.ts'

/**
 * What a task does with a parameter. Values are followed by identity, files and directories by path.
 *
 * IN           reads it
 * OUT          writes it without reading
 * INOUT        reads and writes it
 * CONCURRENT   writes it together with other such tasks, at the same time
 * COMMUTATIVE  reads and writes it, one such task at a time, in any order
 */
export const IN = 'IN'
export const OUT = 'OUT'
export const INOUT = 'INOUT'
export const CONCURRENT = 'CONCURRENT'
export const COMMUTATIVE = 'COMMUTATIVE'
export const FILE_IN = 'FILE_IN'
export const FILE_OUT = 'FILE_OUT'
export const FILE_INOUT = 'FILE_INOUT'
export const FILE_CONCURRENT = 'FILE_CONCURRENT'
export const FILE_COMMUTATIVE = 'FILE_COMMUTATIVE'
/** Lists of files, of any length. */
export const FILES_IN = 'FILES_IN'
export const FILES_OUT = 'FILES_OUT'
export const FILES_INOUT = 'FILES_INOUT'
export const DIR_IN = 'DIR_IN'
export const DIR_OUT = 'DIR_OUT'
export const DIR_INOUT = 'DIR_INOUT'

export type ValueWriteDirection = typeof OUT | typeof INOUT | typeof CONCURRENT | typeof COMMUTATIVE
export type ValueDirection = typeof IN | ValueWriteDirection
export type PathDirection =
  | typeof FILE_IN
  | typeof FILE_OUT
  | typeof FILE_INOUT
  | typeof FILE_CONCURRENT
  | typeof FILE_COMMUTATIVE
  | typeof DIR_IN
  | typeof DIR_OUT
  | typeof DIR_INOUT
export type ListDirection = typeof FILES_IN | typeof FILES_OUT | typeof FILES_INOUT
export type Direction = ValueDirection | PathDirection | ListDirection

export type DatumKind = 'value' | 'file' | 'directory'

/** @internal */
export interface DirectionFacts {
  readonly kind: DatumKind
  readonly mode: AccessMode
  /** Several of them, in an array. */
  readonly isList?: boolean
}

/** @internal */
export const DIRECTIONS: Readonly<Record<Direction, DirectionFacts>> = {
  IN: { kind: 'value', mode: 'in' },
  OUT: { kind: 'value', mode: 'out' },
  INOUT: { kind: 'value', mode: 'inout' },
  CONCURRENT: { kind: 'value', mode: 'concurrent' },
  COMMUTATIVE: { kind: 'value', mode: 'commutative' },
  FILE_IN: { kind: 'file', mode: 'in' },
  FILE_OUT: { kind: 'file', mode: 'out' },
  FILE_INOUT: { kind: 'file', mode: 'inout' },
  FILE_CONCURRENT: { kind: 'file', mode: 'concurrent' },
  FILE_COMMUTATIVE: { kind: 'file', mode: 'commutative' },
  FILES_IN: { kind: 'file', mode: 'in', isList: true },
  FILES_OUT: { kind: 'file', mode: 'out', isList: true },
  FILES_INOUT: { kind: 'file', mode: 'inout', isList: true },
  DIR_IN: { kind: 'directory', mode: 'in' },
  DIR_OUT: { kind: 'directory', mode: 'out' },
  DIR_INOUT: { kind: 'directory', mode: 'inout' },
}
