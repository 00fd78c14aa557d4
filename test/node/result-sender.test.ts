import assert from 'node:assert/strict'
import test from 'node:test'
import type { MessagePort } from 'node:worker_threads'
import { Encoder } from '../../src/model/encoding/encode.ts'
import { ResultSender } from '../../src/node/threads/result-sender.ts'
import { RingReader, RingWriter, createRing } from '../../src/node/threads/ring.ts'

test('given a coordinator that sleeps again, we should not wake it again for a result of which it was told', () => {
  const fromThread = createRing(1024)
  const coordinator = new RingReader(fromThread)
  let woken = 0
  const port = { postMessage: () => void woken++ } as unknown as MessagePort
  const sender = new ResultSender(
    port,
    new RingReader(createRing(1024)),
    new RingWriter(fromThread),
    [],
    false,
  )
  const record = new Encoder()
  record.varint(1)
  const take = (): void => {
    coordinator.sleep()
    while (coordinator.next() >= 0) coordinator.release()
  }

  take()
  sender.send(record, [], false, false)
  sender.announce()
  assert.equal(woken, 1)
  take()
  sender.announce()
  assert.equal(woken, 1, 'nothing has come since')
  sender.send(record, [], false, false)
  sender.announce()
  assert.equal(woken, 2, 'there is another one')
})
