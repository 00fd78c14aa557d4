import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { MillraceError } from '../../src/core/errors.ts'
import type { RunEvent } from '../../src/core/events.ts'
import { BlockEncoder } from '../../src/report/journal/encode.ts'
import { HEADER_BYTES, journalHeader } from '../../src/report/journal/format.ts'
import { readJournal, readJournalBytes, readJournalEnds } from '../../src/report/journal/reader.ts'
import { createJournal, type JournalDisk } from '../../src/report/journal/writer.ts'
import { anyEvent, arbitraries } from './arbitrary-events.ts'
import { assertGolden, readGolden } from './golden.ts'
import { sampleRun } from './sample-run.ts'
import { temporaryFolder } from './temporary.ts'

const folder = temporaryFolder()
let files = 0
const newPath = (): string => join(folder, String(++files), 'journal')

/** A journal in memory, in blocks of the given numbers of events. */
function journalOf(blocks: RunEvent[][]): Buffer {
  const parts = [journalHeader()]
  const encoder = new BlockEncoder(Buffer.alloc(128))
  for (const events of blocks) {
    for (const event of events) encoder.add(event)
    if (!encoder.isEmpty) parts.push(encoder.seal(Buffer.alloc(128)))
  }
  return Buffer.concat(parts)
}

function inBlocks(events: RunEvent[], size: number): RunEvent[][] {
  const blocks: RunEvent[][] = []
  for (let from = 0; from < events.length; from += size) blocks.push(events.slice(from, from + size))
  return blocks
}

async function readAll(path: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of readJournal(path)) events.push(event)
  return events
}

function assertPrefix(found: RunEvent[], written: RunEvent[]): void {
  assert.deepEqual(found, written.slice(0, found.length))
}

for (const [type, arbitrary] of Object.entries(arbitraries)) {
  test(`${type} comes back exactly as it was`, () => {
    const property = fc.property(fc.array(arbitrary, { minLength: 1, maxLength: 5 }), events => {
      assert.deepEqual(readJournalBytes(journalOf([events])).events, events)
    })
    fc.assert(property, { numRuns: 150 })
  })
}

test('events of all types in blocks of any size come back in order', () => {
  const property = fc.property(fc.array(fc.array(anyEvent, { maxLength: 8 }), { maxLength: 5 }), blocks => {
    const found = readJournalBytes(journalOf(blocks))
    assert.deepEqual(found.events, blocks.flat())
    assert.equal(found.dropped, 0)
    assert.equal(found.complete, blocks.flat().at(-1)?.type === 'run-ended')
  })
  fc.assert(property, { numRuns: 100 })
})

test('a journal cut at any byte gives what its whole blocks hold', () => {
  const blocks = inBlocks(sampleRun, 5)
  const bytes = journalOf(blocks)
  const ends = [HEADER_BYTES]
  for (const block of blocks) ends.push(ends.at(-1)! + journalOf([block]).length - HEADER_BYTES)
  for (let cut = 0; cut <= bytes.length; cut++) {
    const found = readJournalBytes(bytes.subarray(0, cut))
    assertPrefix(found.events, sampleRun)
    const whole = ends.filter(end => end <= cut).length - 1
    assert.equal(found.events.length, blocks.slice(0, Math.max(0, whole)).flat().length)
    assert.equal(found.complete, cut === bytes.length)
    assert.equal(found.dropped, cut < HEADER_BYTES ? 0 : cut - ends[whole]!)
  }
})

test('a journal with a byte changed anywhere gives a prefix, or says that it is no journal', () => {
  const bytes = journalOf(inBlocks(sampleRun, 5))
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [0x01, 0x80, 0xff]) {
      const damaged = Buffer.from(bytes)
      damaged[at]! ^= bit
      if (at < HEADER_BYTES) {
        assert.throws(
          () => readJournalBytes(damaged),
          (error: MillraceError) => error.code === 'MR_JOURNAL',
        )
        continue
      }
      const found = readJournalBytes(damaged)
      assertPrefix(found.events, sampleRun)
      assert.ok(found.dropped > 0 && !found.complete)
    }
  }
})

test('zeros that a crash left at the end are dropped', () => {
  const bytes = Buffer.concat([journalOf([sampleRun]), Buffer.alloc(4096)])
  const found = readJournalBytes(bytes)
  assert.deepEqual(found.events, sampleRun)
  assert.equal(found.dropped, 4096)
})

test('the reader of files agrees with the reader of bytes at every cut', async () => {
  const bytes = journalOf(inBlocks(sampleRun.slice(0, 12), 3))
  const path = join(folder, 'cut')
  for (let cut = 0; cut <= bytes.length; cut += 7) {
    writeFileSync(path, bytes.subarray(0, cut))
    assert.deepEqual(await readAll(path), readJournalBytes(bytes.subarray(0, cut)).events)
  }
})

test('what is written is read, in blocks smaller and larger than the windows of the reader', async () => {
  const events: RunEvent[] = sampleRun.slice(0, -1)
  const name = 'x'.repeat(700_000)
  for (let task = 100; task < 30_000; task++) events.push({ type: 'ready', at: task / 8, task })
  events.push({ type: 'note', at: 5000, level: 'info', text: name }, sampleRun.at(-1)!)
  for (const blockBytes of [64, 4096, 3_000_000]) {
    const path = newPath()
    const journal = createJournal(path, { blockBytes })
    for (const event of events) journal.observe(event)
    await journal.close()
    assert.equal(journal.error, null)
    assert.deepEqual(await readAll(path), events)
    assert.deepEqual(readJournalBytes(readFileSync(path)).events, events)
    assert.deepEqual(await readJournalEnds(path), { first: sampleRun[0], last: sampleRun.at(-1) })
  }
})

test('flushSync writes all that was observed, and the journal goes on after it', async () => {
  const path = newPath()
  const journal = createJournal(path)
  for (const event of sampleRun.slice(0, 10)) journal.observe(event)
  journal.flushSync()
  assert.deepEqual(readJournalBytes(readFileSync(path)).events, sampleRun.slice(0, 10))
  for (const event of sampleRun.slice(10)) journal.observe(event)
  await journal.close()
  journal.flushSync()
  journal.observe(sampleRun[0]!)
  await journal.close()
  assert.deepEqual(readJournalBytes(readFileSync(path)).events, sampleRun)
})

test('the start of a run is on disk at once, whatever comes after it', async () => {
  const path = join(folder, 'early')
  const journal = createJournal(path, { flushEvery: 3_600_000 })
  for (const event of sampleRun.slice(0, 3)) journal.observe(event)
  for (const end = Date.now() + 60_000; Date.now() < end && readFileSync(path).length <= HEADER_BYTES;) {
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  assert.equal(readJournalBytes(readFileSync(path)).events[0]?.type, 'run-started')
  await journal.close()
})

test('observe touches no file', () => {
  const disk = fakeDisk()
  const journal = createJournal('j', { disk, blockBytes: 64 })
  for (const event of sampleRun) journal.observe(event)
  assert.deepEqual(disk.calls, ['open'])
})

test('short writes, slow writes and flushSync in the middle of a write give the same journal', async () => {
  for (const most of [7, 100]) {
    for (const interrupt of [false, true]) {
      const disk = fakeDisk({ most })
      const journal = createJournal('j', { disk, blockBytes: 200, flushEvery: 0 })
      for (const event of sampleRun) {
        journal.observe(event)
        if (event.type === 'blocked') await new Promise(resolve => setImmediate(resolve))
        if (interrupt && event.type === 'blocked') journal.flushSync()
      }
      await journal.close()
      assert.equal(journal.error, null)
      assert.deepEqual(readJournalBytes(disk.content()).events, sampleRun)
      assert.equal(disk.isClosed, true)
      assert.equal(disk.writesAfterClose, 0)
    }
  }
})

test('a write that ends after flushSync counts no more, and the file is closed only after it', async () => {
  const disk = fakeDisk({ isHeld: true })
  const journal = createJournal('j', { disk, flushEvery: 0 })
  for (const event of sampleRun.slice(0, 10)) journal.observe(event)
  while (disk.held.length === 0) await new Promise(resolve => setTimeout(resolve, 1))
  journal.flushSync()
  for (const event of sampleRun.slice(10, 20)) journal.observe(event)
  journal.flushSync()
  for (const event of sampleRun.slice(20, 30)) journal.observe(event)
  while (disk.held.length === 1) await new Promise(resolve => setTimeout(resolve, 1))
  disk.held.shift()!()
  for (const event of sampleRun.slice(30)) journal.observe(event)
  const closed = journal.close()
  while (disk.held.length > 0) {
    assert.equal(disk.isClosed, false)
    disk.held.shift()!()
    await new Promise(resolve => setImmediate(resolve))
  }
  await closed
  assert.equal(journal.error, null)
  assert.deepEqual(readJournalBytes(disk.content()).events, sampleRun)
  assert.equal(disk.isClosed, true)
  assert.equal(disk.writesAfterClose, 0)
})

test('a full disk stops the journal, not the run', async () => {
  const disk = fakeDisk({ room: 500 })
  const journal = createJournal('j', { disk, blockBytes: 64, flushEvery: 0 })
  for (const event of sampleRun) {
    journal.observe(event)
    await new Promise(resolve => setImmediate(resolve))
  }
  await journal.close()
  assert.ok(journal.error instanceof MillraceError)
  assert.match(journal.error.message, /no space left[\s\S]*goes on without a journal/)
  const { events } = readJournalBytes(disk.content())
  assert.ok(events.length > 0)
  assertPrefix(events, sampleRun)
  assert.equal(disk.isClosed, true)
})

test('a full disk at flushSync stops the journal too', () => {
  const disk = fakeDisk({ room: 100 })
  const journal = createJournal('j', { disk })
  for (const event of sampleRun) journal.observe(event)
  journal.flushSync()
  assert.match(journal.error?.message ?? '', /no space left/)
})

test('a disk that never answers does not eat the memory', () => {
  const disk = fakeDisk()
  const journal = createJournal('j', { disk, blockBytes: 64, maxBehind: 1000 })
  for (const event of sampleRun) journal.observe(event)
  assert.match(journal.error?.message ?? '', /too slow/)
})

test('a journal is never overwritten, and one that cannot be made is no reason to stop', async () => {
  const path = newPath()
  const first = createJournal(path)
  for (const event of sampleRun) first.observe(event)
  await first.close()
  const second = createJournal(path)
  second.observe(sampleRun[0]!)
  second.flushSync()
  await second.close()
  assert.match(second.error?.message ?? '', /EEXIST/)
  assert.deepEqual(await readAll(path), sampleRun)
  assert.match(createJournal(join(path, 'below', 'journal')).error?.message ?? '', /ENOTDIR|EEXIST/)
})

test('a journal that is missing, of another kind or of another version says so', async () => {
  const other = join(folder, 'other')
  await assert.rejects(readAll(join(folder, 'missing')), /MR_JOURNAL/)
  writeFileSync(other, 'something else entirely')
  await assert.rejects(readAll(other), /is not a journal[\s\S]*MR_JOURNAL/)
  const newer = journalHeader()
  newer.writeUInt32LE(9, 8)
  writeFileSync(other, newer)
  await assert.rejects(readAll(other), /of version 9, not 1/)
  assert.ok(existsSync(other))
})

test('a reader that stops early closes the file', async () => {
  const path = newPath()
  const journal = createJournal(path)
  for (const event of sampleRun) journal.observe(event)
  await journal.close()
  for await (const event of readJournal(path)) {
    assert.equal(event.type, 'run-started')
    break
  }
})

test('the format of version 1 is written and read for ever', () => {
  assertGolden('journal-v1.golden', journalOf(inBlocks(sampleRun, 9)))
  assert.deepEqual(readJournalBytes(readGolden('journal-v1.golden')).events, sampleRun)
})

interface FakeDisk extends JournalDisk {
  calls: string[]
  isClosed: boolean
  writesAfterClose: number
  /** Writes that wait to be let go, when the disk holds them. */
  held: (() => void)[]
  content(): Buffer
}

function fakeDisk({ most = Infinity, room = Infinity, isHeld = false } = {}): FakeDisk {
  const bytes = Buffer.alloc(100_000)
  let end = 0
  const put = (piece: Buffer, position: number): number => {
    const size = Math.min(piece.length, most, room - position)
    if (size <= 0) throw new Error('ENOSPC: no space left on device')
    piece.copy(bytes, position, 0, size)
    end = Math.max(end, position + size)
    return size
  }
  const disk: FakeDisk = {
    calls: [],
    isClosed: false,
    writesAfterClose: 0,
    held: [],
    content: () => bytes.subarray(0, end),
    open() {
      disk.calls.push('open')
      return 7
    },
    write(_fd, piece, position, done) {
      disk.calls.push('write')
      const finish = (): void => {
        if (disk.isClosed) disk.writesAfterClose++
        let written = 0
        try {
          written = put(piece, position)
        } catch (error) {
          return done(error as Error, 0)
        }
        done(null, written)
      }
      if (isHeld) disk.held.push(finish)
      else setImmediate(finish)
    },
    writeSync(_fd, piece, position) {
      disk.calls.push('writeSync')
      return put(piece, position)
    },
    close(_fd, done) {
      disk.calls.push('close')
      disk.isClosed = true
      done(null)
    },
  }
  return disk
}
