import assert from 'node:assert/strict'
import fs, {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { MISSING, UNSEEN, lookAt } from '../../src/flow/state/file-table.ts'
import { takeLock } from '../../src/flow/state/lock.ts'
import { ToolStatPrefetch } from '../../src/flow/state/tool-stat-prefetch.ts'
import { State } from '../../src/flow/state/state.ts'
import { lookTool } from '../../src/native/look-tool.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-state-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let count = 0
const fresh = (): string => join(folder, String(++count))

async function add(state: State, number: number): Promise<void> {
  const output = state.files.id(`out/${number} é\n"`)
  const input = state.files.id(`in/${number}`)
  for (const file of [output, input]) {
    state.files.setStamp(
      file,
      { size: number, mtime: number + 0.25, ctime: number + 0.5, ino: 7 },
      1000 + file,
      false,
    )
  }
  await state.record(
    { text: number, outputs: [output], outputStamps: [5], inputs: [input, -1], inputStamps: [6, 0] },
    [output, input],
  )
}

/** Everything that a state knows, without the numbers of files. */
function contents(state: State): unknown[] {
  const { files, records } = state
  return [...records.all()].map(record => ({
    text: record.text,
    outputs: record.outputs.map(file => [
      files.path(file),
      files.size[file],
      files.mtime[file],
      files.ctime[file],
      files.stamp[file],
    ]),
    inputs: record.inputs.map(file => (file < 0 ? null : files.path(file))),
    stamps: [...record.outputStamps, ...record.inputStamps],
  }))
}

test('a log that is cut at any byte gives all whole entries, and goes on from there', async () => {
  const path = fresh()
  const state = new State(path)
  for (let number = 0; number < 5; number++) await add(state, number)
  state.close()
  const log = join(path, 'flow', 'log')
  const whole = readFileSync(log)
  const all = contents(new State(path))
  assert.equal(all.length, 5)
  for (let length = 0; length <= whole.length; length += length % 7 === 0 ? 1 : 3) {
    writeFileSync(log, whole.subarray(0, length))
    const cut = new State(path)
    const kept = contents(cut)
    assert.deepEqual(kept, all.slice(0, kept.length), `cut at ${length}`)
    await add(cut, 99)
    cut.close()
    const again = contents(new State(path))
    assert.equal(again.length, kept.length + 1, `after the cut at ${length}`)
    assert.deepEqual(again.slice(0, -1), kept)
  }
})

test('a damaged byte in the log hides nothing that came before it', async () => {
  const path = fresh()
  const state = new State(path)
  for (let number = 0; number < 4; number++) await add(state, number)
  state.close()
  const log = join(path, 'flow', 'log')
  const whole = readFileSync(log)
  const all = contents(new State(path))
  for (let at = 0; at < whole.length; at += 11) {
    const damaged = Buffer.from(whole)
    damaged[at] = (damaged[at] as number) ^ 1
    writeFileSync(log, damaged)
    const kept = contents(new State(path))
    assert.deepEqual(kept, all.slice(0, kept.length), `byte ${at}`)
  }
})

test('many entries are folded into a snapshot that says the same, and a damaged snapshot is not believed', async () => {
  const path = fresh()
  const state = new State(path)
  for (let number = 0; number < 1200; number++) await add(state, number % 700)
  const before = contents(state)
  state.close()
  assert.ok(readFileSync(join(path, 'flow', 'log')).length < 100, 'the log was not folded')
  const folded = new State(path)
  assert.deepEqual(contents(folded), before)
  await add(folded, 5000)
  folded.remove(folded.files.id('out/1 é\n"'))
  folded.close()
  const last = contents(new State(path))
  assert.equal(last.length, 700)
  const snapshot = join(path, 'flow', 'snapshot')
  const bytes = readFileSync(snapshot)
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1
  writeFileSync(snapshot, bytes)
  assert.equal(contents(new State(path)).length, 0)
})

test(
  'the tool that looks ahead sees what the plan would see',
  { skip: !lookTool() && 'it is not built' },
  async () => {
    const path = fresh()
    const state = new State(path)
    for (let number = 0; number < 1500; number++) await add(state, number)
    for (const name of ['odd é\n"', 'link', 'folder', 'loop']) state.files.id(name)
    await state.record(
      {
        text: 1,
        outputs: [state.files.id('odd é\n"')],
        outputStamps: [1],
        inputs: ['link', 'folder', 'loop'].map(name => state.files.id(name)),
        inputStamps: [1, 1, 1],
      },
      [],
    )
    state.close()
    const root = join(path, 'root')
    mkdirSync(join(root, 'in'), { recursive: true })
    mkdirSync(join(root, 'folder'))
    for (let number = 0; number < 1500; number += 2)
      writeFileSync(join(root, 'in', String(number)), 'x'.repeat(number))
    writeFileSync(join(root, 'odd é\n"'), 'text')
    symlinkSync('in/4', join(root, 'link'))
    symlinkSync('loop', join(root, 'loop'))
    const { files } = new State(path)
    const looks = ToolStatPrefetch.start(
      lookTool() ?? '',
      join(path, 'flow', 'snapshot'),
      files.paths.length,
      root,
    )
    const left: string[] = []
    for (let file = 0; file < files.paths.length; file++) {
      const name = files.path(file)
      const deadline = Date.now() + 60_000
      while (!looks?.tell(file, files) && !['folder', 'loop'].includes(name) && Date.now() < deadline) {
        await new Promise(resolve => setImmediate(resolve))
      }
      if (files.nowSize[file] === UNSEEN) {
        left.push(name)
        continue
      }
      const seen = lookAt(join(root, name))
      const told = [files.nowSize[file], files.nowMtime[file], files.nowCtime[file], files.nowIno[file]]
      assert.deepEqual(told, seen ? [seen.size, seen.mtime, seen.ctime, seen.ino] : [MISSING, 0, 0, 0], name)
    }
    looks?.stop()
    assert.deepEqual(left, ['folder', 'loop'])
  },
)

test('a long log that a killed run left is folded by the next one that may write', async () => {
  const path = fresh()
  const killed = new State(path)
  for (let number = 0; number < 1200; number++) await add(killed, number)
  const log = join(path, 'flow', 'log')
  const before = contents(killed)
  rmSync(join(path, 'flow', 'lock'))
  assert.ok(readFileSync(log).length > 100_000)
  const next = new State(path)
  next.tidy()
  next.close()
  assert.ok(readFileSync(log).length < 100)
  assert.deepEqual(contents(new State(path)), before)
})

test('a second run in the same folder is refused while the first goes on', async () => {
  const path = fresh()
  const state = new State(path)
  await add(state, 1)
  assert.throws(() => new State(path).open(), /another run \(process \d+\).*\n.*MR_FLOW_STATE/)
  state.close()
  writeFileSync(join(path, 'flow', 'lock'), '1 12345\n')
  const next = new State(path)
  next.open()
  next.close()
})

test('the lock of a run that was killed is not taken away while another run is about to', () => {
  const inner = mkdtempSync(join(folder, 'lock-'))
  const path = join(inner, 'lock')
  writeFileSync(path, '999999999 1\n')
  const release = takeLock(`${path}.old`)
  assert.throws(() => takeLock(path), /another run/)
  assert.equal(readFileSync(path, 'utf8'), '999999999 1\n')
  release()
  takeLock(path)()
  assert.deepEqual(readdirSync(inner), [])
})

test('a lock that was not there at a look is not taken away', t => {
  const inner = mkdtempSync(join(folder, 'lock-'))
  const path = join(inner, 'lock')
  const release = takeLock(path)
  const held = readFileSync(path, 'utf8')
  const { readFileSync: readNow } = fs
  let looks = 0
  // As if it had gone before each of these looks, and come again after it.
  const gone = (...args: Parameters<typeof readNow>): unknown => {
    if (args[0] !== path || ++looks > 2) return readNow(...args)
    throw Object.assign(new Error('gone'), { code: 'ENOENT' })
  }
  t.mock.method(fs, 'readFileSync', gone as never)
  syncBuiltinESMExports()
  try {
    assert.throws(() => takeLock(path), /another run/)
  } finally {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  }
  assert.equal(readFileSync(path, 'utf8'), held)
  release()
})
