/**
 * The store of results, as it lies on disk. All numbers are little-endian.
 *
 *   STORE/format                     the text `millrace store 1`
 *   STORE/segments/NAME.keys         what is there: one file per run that wrote
 *   STORE/segments/NAME.data         the bytes of it, one payload behind the other
 *   STORE/objects/AB/CDEF…           content of files, by digest
 *   STORE/new/                       objects that are not complete yet
 *
 *   keys    = header block*
 *   header  = 'MILLKEYS' version:u32 crc:u32 owner[112]     owner: process, start and host, as JSON, with zeros behind it
 *   block   = magic:u32 count:u32 crc:u32 entry[count]      crc = crc32 of the entries, begun at count
 *   entry   = key[16] offset:u48 type:u16 length:u32 crc:u32 time:u32 objects:u32
 *
 * `crc` of an entry is the crc32 of its payload. `time` is in seconds since 1970. A payload begins with the digests of
 * the `objects` that it needs, 16 bytes each.
 *
 * Files are only appended to, and each run has files of its own: runs need no lock to write side by side. A payload is
 * written before its entry, but nothing depends on that: an entry whose payload is short or does not match its crc is
 * not there. A reader stops at the first block that is short or does not match. So a cut at any byte, and writes that a
 * power cut has reordered, cost results and never make a wrong one.
 */
export const STORE_VERSION = 1
export const FORMAT_TEXT = `millrace store ${STORE_VERSION}\n`

export const HEADER_BYTES = 128
export const OWNER_BYTES = 112
export const KEYS_MAGIC = 'MILLKEYS'
export const BLOCK_MAGIC = 0x4b4c424d
export const BLOCK_HEADER_BYTES = 12
export const ENTRY_BYTES = 40
export const ENTRY_WORDS = ENTRY_BYTES / 4
export const KEY_BYTES = 16

/** What an entry is. */
export const ENTRY = {
  /** The results of a task. */
  result: 1,
  /** A run has used a result of another store, or one that is not written yet: no payload. */
  used: 2,
  /** What a file looked like when it had a certain content. */
  look: 3,
  /** Code, and other facts for people. */
  fact: 4,
  /** A run has used results of one segment: the payload is its name and, as JSON, from which to which entry, again and again. */
  uses: 5,
} as const
export type EntryType = (typeof ENTRY)[keyof typeof ENTRY]

/** Places of an entry, in words of 32 bits. */
export const WORD = { offset: 4, type: 5, length: 6, crc: 7, time: 8, objects: 9 } as const
