/**
 * The journal of a run, as it lies on disk. All fixed-width numbers are little-endian.
 *
 *   file    = header block*
 *   header  = 'MILLRACE' version:u32
 *   block   = length:u32 crc:u32 payload[length]     length > 0; crc = crc32 of payload, begun at length
 *   payload = record*
 *   record  = tag:u8 body                            tag = kind of record | flags
 *
 * The file is only appended to. Blocks end where the writer flushed, so a cut anywhere loses the block it
 * falls in and nothing before it; the reader stops at the first block that is short or does not match its
 * crc. A length of 0 is invalid, because a crash may leave zeros at the end of a file.
 *
 * Kinds of record (low four bits of the tag):
 *
 *   1 submitted  time task kind flags:u8 [parent] [group] [priority] reads writes [files] [demand] [label]
 *   2 ready      time task
 *   3 started    time task attempt node lane cpus [implementation]
 *   4 finished   time task attempt [usage] [steps]      FINISHED_KEPT: it made nothing
 *   5 committed  time version bytes
 *   6 released   time task version
 *   7 kept       time task
 *  15 any event  size, then the event as JSON in UTF-8
 *
 * The seven are those that come by the million. An event of theirs that does not fit (a number that is no
 * count, such as half a cpu) is written as JSON like any other, so every event comes back as it was;
 * fields that are `undefined` come back as absent, -0 as 0.
 *
 *   count   7 bits per byte, lowest first, high bit set on all but the last; up to 2^53 - 1
 *   list    size:count, then that many counts
 *   text    (length * 2 + wide):count, then one byte (Latin-1) or two (UTF-16) per unit
 *   time    by TAG_EXACT: float64 of milliseconds; else microseconds since the last such time of this
 *           block (since 0 for its first), zigzag, as a count
 *   group   absent without SUBMITTED_GROUP; the last group of this block with SUBMITTED_SAME_GROUP; else text
 *   usage   with FINISHED_USAGE: microseconds of CPU, peak, asked, read and written bytes, as counts
 *   steps   with FINISHED_STEPS: microseconds of `from` and of each step in the order of `AttemptSteps`, as counts
 *   files   size:count, then (version:count path:text) each
 */
export const MAGIC = 'MILLRACE'
export const VERSION = 1
export const HEADER_BYTES = 12
export const BLOCK_HEADER_BYTES = 8
/** What a reader is ready to hold in memory; a length above it is corrupt. */
export const MAX_BLOCK_BYTES = 256 * 1024 * 1024

export const RECORD = {
  submitted: 1,
  ready: 2,
  started: 3,
  finished: 4,
  committed: 5,
  released: 6,
  kept: 7,
  json: 15,
} as const
export const TAG_KIND = 0x0f
export const TAG_EXACT = 0x80
export const STARTED_IMPLEMENTATION = 0x40
/** Its CPUs are a share of one, in thousandths. */
export const STARTED_SHARE = 0x20
export const FINISHED_USAGE = 0x40
export const FINISHED_STEPS = 0x20
export const FINISHED_KEPT = 0x10

export const SUBMITTED_PARENT = 0x01
export const SUBMITTED_GROUP = 0x02
export const SUBMITTED_SAME_GROUP = 0x04
export const SUBMITTED_PRIORITY_COUNT = 0x08
export const SUBMITTED_PRIORITY_EXACT = 0x10
export const SUBMITTED_FILES = 0x20
export const SUBMITTED_DEMAND = 0x40
export const SUBMITTED_LABEL = 0x80

export function journalHeader(): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.write(MAGIC, 'latin1')
  header.writeUInt32LE(VERSION, MAGIC.length)
  return header
}

/** The start value makes a damaged length fail even where the payload would still match. */
export function blockCrc(payload: Uint8Array): number {
  // Loaded at the first block: a program's first result does not have to wait for it.
  return process.getBuiltinModule('node:zlib').crc32(payload, payload.length)
}
