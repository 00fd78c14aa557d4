import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Engine } from '../../src/core/engine.ts'
import type { Move } from '../../src/core/io/task-io.ts'
import { Devices } from '../../src/node/io/devices.ts'
import type { FileStore } from '../../src/storage/file-store.ts'
import { readJournal } from '../../src/report/journal/reader.ts'
import { KeyedMutex } from '../../src/storage/keyed-mutex.ts'
import { Program } from './program.ts'

test('no move begins when a run ends, and the end waits for those that have begun', async () => {
  const told: string[] = []
  const move = (id: number): Move => ({ id, from: { index: 0 }, to: { index: 1 } }) as unknown as Move
  const io = {
    devices: [],
    moves: { active: new Set() },
    moved: ({ id }: Move) => told.push(`moved ${id}`),
    moveFailed: ({ id }: Move, why: string, _now: number, phase = 'failed') =>
      told.push(`${id} ${phase}: ${why}`),
  }
  let next = 2
  const files = { places: { move: () => new Promise(resolve => setImmediate(resolve, 'kept')) } }
  const devices: Devices = new Devices(
    { io, observer: null } as unknown as Engine,
    files as unknown as FileStore,
    () => 0,
    () => devices.move(move(next++)),
  )
  devices.move(move(1))
  await devices.end()
  assert.deepEqual(told, ['moved 1', '2 dropped: the run ends'])
})

test('idle() also waits for actions that were queued meanwhile', async () => {
  const mutex = new KeyedMutex<object>()
  const thing = {}
  const done: number[] = []
  const turn = (number: number): Promise<void> =>
    mutex.run(thing, async () => {
      await new Promise(resolve => setImmediate(resolve))
      done.push(number)
      if (number === 3) throw new Error('no')
    })
  void turn(1).then(() => void turn(3).catch(() => undefined))
  void turn(2)
  await mutex.idle(thing)
  assert.deepEqual(done, [1, 2, 3])
})

const skip =
  !existsSync('/dev/shm') || statSync('/dev/shm').dev === statSync('/tmp').dev ? 'no second device' : false

test(
  'directories that are still on a fast layer when a run ends come to their places, and the journal says so',
  { skip },
  async () => {
    const program = new Program({
      'app.mjs': `
import { writeFile } from 'node:fs/promises'
import { configure, main, task, DIR_OUT, IN } from 'millrace'
configure({ machine: 'machine.yaml', flush: 'idle', progress: 'none' })
export const save = task({ name: 'save', io: true, params: [IN, DIR_OUT], size: 4000 }, async (i, path) => {
  await writeFile(path + '/a', String(i))
  await writeFile(path + '/b', 'b')
})
main(() => {
  for (let i = 0; i < 200; i++) save(i, 'out/' + i)
})`,
    })
    const fast = mkdtempSync('/dev/shm/millrace-test-last-')
    try {
      const storage = [
        { name: 'memory', path: fast, bandwidth: '1000MB/s', capacity: '18MB' },
        { name: 'disk', path: '.', bandwidth: '100MB/s' },
      ]
      writeFileSync(program.path('machine.yaml'), JSON.stringify({ nodes: [{ storage }] }))
      const { code, err } = await program.run('app.mjs', [])
      assert.equal(code, 0, err)
      for (let i = 0; i < 200; i++) assert.equal(readFileSync(program.path(`out/${i}/a`), 'utf8'), String(i))
      const [run = ''] = readdirSync(program.path('.millrace/runs'))
      const used = new Map<number, number>()
      for await (const event of readJournal(program.path(`.millrace/runs/${run}/journal`)))
        if (event.type === 'device') used.set(event.device, event.used)
      assert.ok(used.has(0))
      for (const bytes of used.values())
        assert.equal(bytes, 0, 'the journal says that files are left on a device')
    } finally {
      rmSync(fast, { recursive: true, force: true })
      program.remove()
    }
  },
)
