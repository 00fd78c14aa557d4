import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { KeptMemory } from '../../src/node/threads/kept-memory.ts'
import { Decoder } from '../../src/model/encoding/decode.ts'
import { Encoder } from '../../src/model/encoding/encode.ts'
import { SentMemory } from '../../src/node/threads/sent-memory.ts'
import type { MemoryMessage } from '../../src/node/threads/sent-memory.ts'

type Step =
  | { do: 'send'; buffers: number[] }
  | { do: 'deliver' }
  | { do: 'read' }
  | { do: 'take back'; which: number }
  | { do: 'replace thread' }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      buffers: fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 4, arbitrary: fc.constant({ do: 'deliver' as const }) },
  { weight: 4, arbitrary: fc.constant({ do: 'read' as const }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take back' as const), which: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'replace thread' as const }) },
)

const hooks = { findClass: () => null, slot: () => undefined }

interface SentRecord {
  bytes: Uint8Array
  before: number
  buffers: SharedArrayBuffer[]
}

/** One thread: its messages come in order, and so do its records, but the two not with each other. */
class Model {
  readonly pool = Array.from({ length: 6 }, (_, i) => new SharedArrayBuffer(i))
  readonly sent = new SentMemory((_lane, number) => this.messages.push({ forget: number }))
  kept = new KeptMemory()
  messages: (MemoryMessage | { forget: number })[] = []
  records: SentRecord[] = []
  posted = 0
  received = 0

  constructor() {
    this.sent.reset(0)
  }

  send(buffers: SharedArrayBuffer[]): void {
    const encoder = new Encoder()
    const message = this.sent.write(encoder, buffers, 0)
    if (message) {
      this.messages.push(message)
      this.posted++
    }
    this.records.push({ bytes: encoder.copy(), before: this.posted, buffers })
  }

  deliver(): void {
    const message = this.messages.shift()
    if (!message) return
    if ('forget' in message) return this.kept.forget(message.forget)
    this.kept.add(message.entries, message.buffers)
    this.received++
  }

  read(): void {
    const record = this.records.shift()
    if (!record) return
    while (this.received < record.before) this.deliver()
    assert.deepEqual(this.kept.take(new Decoder(record.bytes, hooks)), record.buffers)
  }

  takeBack(which: number): void {
    const [record] = this.records.splice(which, 1)
    for (const buffer of record?.buffers ?? []) this.sent.takenBack(buffer, 0)
  }

  replaceThread(): void {
    this.kept = new KeptMemory()
    this.messages = []
    this.records = []
    this.posted = this.received = 0
    this.sent.reset(0)
  }
}

test('a thread finds the memory of each record, whatever was taken back or came late', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const model = new Model()
      for (const one of steps) {
        if (one.do === 'send') model.send(one.buffers.map(number => model.pool[number] as SharedArrayBuffer))
        else if (one.do === 'deliver') model.deliver()
        else if (one.do === 'read') model.read()
        else if (one.do === 'take back') model.takeBack(one.which)
        else model.replaceThread()
      }
      while (model.records.length > 0) model.read()
    }),
    { numRuns: 2000 },
  )
})

test('memory that many tasks use is sent once, and what one task uses is not kept', () => {
  const model = new Model()
  const [first, second] = model.pool as [SharedArrayBuffer, SharedArrayBuffer]
  model.send([first])
  const single = model.records[0] as SentRecord
  model.read()
  assert.throws(() => model.kept.take(new Decoder(single.bytes, hooks)), /was not sent/)
  model.send([second])
  model.send([second])
  assert.equal(model.posted, 3)
  for (let i = 0; i < 10; i++) model.send([second, second])
  assert.equal(model.posted, 3)
  while (model.records.length > 0) model.read()
})
