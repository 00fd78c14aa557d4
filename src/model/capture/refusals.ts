import { MillraceError } from '../../core/errors.ts'
import { Stored } from '../encoding/stored.ts'
import { TAG } from '../encoding/tags.ts'
import type { Direction } from '../options/directions.ts'

/** Why an argument cannot be passed as it is. */

/** Tasks write it at the same time, so it must be memory that they can share. */
export function rejectUnshareable(value: unknown): void {
  if (value === undefined) return
  if (!(value instanceof Stored) || value.bytes[0] !== TAG.arrayBeside) {
    throw new MillraceError(
      'MR_DIRECTION',
      'CONCURRENT needs memory that tasks can share: a large typed array',
      {
        hint: 'Use shared(Float64Array, n), or COMMUTATIVE for other objects.',
      },
    )
  }
}

export const busy = (): MillraceError =>
  new MillraceError('MR_ALIAS', 'it holds something that tasks are still making, writing, or sharing', {
    hint: 'waitOn() that first, or pass it as an argument of its own.',
  })

export const mixed = (direction: Direction): MillraceError =>
  new MillraceError(
    'MR_DIRECTION',
    `${direction} got an object that holds futures, shared arrays or what tasks are writing, beside other values, and what the task writes to those others would not come back`,
    { hint: 'Wait for the object first (waitOn), or pass the parts as arguments of their own.' },
  )

export const frozen = (direction: Direction): MillraceError =>
  new MillraceError(
    'MR_DIRECTION',
    `${direction} needs an object that can be written, and got one that is frozen`,
    {
      hint: 'Pass a copy, such as {...object}, and use the copy from there on.',
    },
  )
