import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import test from 'node:test'
import { Holders } from '../../src/cluster/coordinator/holders.ts'
import { NodeLink } from '../../src/cluster/coordinator/node-link.ts'
import { FROM_AGENT, TO_AGENT } from '../../src/cluster/link/frame-types.ts'
import { FrameSplitter, FrameWriter } from '../../src/cluster/link/frames.ts'

/** A link whose frames are collected. */
function linked(): { link: NodeLink; types: number[]; said(write: (writer: FrameWriter) => void): void } {
  const link = new NodeLink('n1', 0, new Holders())
  const control = new PassThrough()
  const types: number[] = []
  const splitter = new FrameSplitter()
  control.write = ((chunk: Buffer) => {
    splitter.push(chunk, type => types.push(type))
    return true
  }) as typeof control.write
  link.attach(control, Buffer.alloc(0))
  const said = (write: (writer: FrameWriter) => void): void => {
    const writer = new FrameWriter()
    write(writer)
    control.emit('data', writer.take())
  }
  return { link, types, said }
}

const task = {
  id: 7,
  record: new Uint8Array(8),
  length: 8,
  blobs: [],
  placed: [],
  keepsFailed: false,
  staysFrom: 0,
}

test('given a node whose tasks have all ended, we should not wake its agent to hurry', () => {
  const { link, types, said } = linked()
  const results: number[] = []
  const thread = link.openThread(0, false, {
    result: decoder => results.push(decoder.varint()),
    message: () => undefined,
    findClass: () => null,
    announced: () => undefined,
    ended: () => undefined,
  })
  const hurries = (): number => {
    link.flush()
    return types.filter(type => type === TO_AGENT.hurry).length
  }

  thread.sendTask(task)
  said(writer => {
    writer.begin(FROM_AGENT.result)
    // The lane, the task, that it is the last of it, no buffers, nothing written in place; then the record.
    for (const number of [0, 7, 1, 0, 0, 7]) writer.varint(number)
    writer.end()
  })
  assert.deepEqual(results, [7])
  thread.hurry()
  assert.equal(hurries(), 0)

  thread.sendTask({ ...task, id: 8 })
  thread.hurry()
  assert.equal(hurries(), 1, 'this one is still there')
})
