import assert from 'node:assert/strict'
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { digestOf, hexOf } from '../../src/store/digest.ts'
import { evict } from '../../src/store/evict.ts'
import { ENTRY } from '../../src/store/format.ts'
import { Store } from '../../src/store/store.ts'

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const keyOf = (name: string): Buffer => digestOf(name)
const read = (store: Store, name: string): string | null =>
  store.find(ENTRY.result, keyOf(name))?.toString() ?? null

async function filled(folder: string, names: readonly string[], name?: string): Promise<void> {
  const store = Store.open(folder, name === undefined ? {} : { name })
  for (const one of names) store.put(ENTRY.result, keyOf(one), Buffer.from(`value of ${one}`))
  await store.close()
}

test('what is put is found: at once, after a flush, and by the next that opens the store', async () => {
  const folder = temporary()
  const store = Store.open(folder)
  store.put(ENTRY.result, keyOf('a'), Buffer.from('one'))
  assert.equal(read(store, 'a'), 'one')
  await store.flush()
  assert.equal(read(store, 'a'), 'one')
  assert.equal(read(store, 'b'), null)
  await store.close()
  assert.equal(read(Store.open(folder), 'a'), 'one')
})

test('the last of two results with one key counts, also from another run', async () => {
  const folder = temporary()
  await filled(folder, ['a'], '1')
  const second = Store.open(folder, { name: '2' })
  second.put(ENTRY.result, keyOf('a'), Buffer.from('newer'))
  await second.close()
  assert.equal(read(Store.open(folder), 'a'), 'newer')
})

test('runs write side by side', async () => {
  const folder = temporary()
  const stores = ['x', 'y', 'z'].map(name => Store.open(folder, { name }))
  for (const [i, store] of stores.entries()) {
    for (let n = 0; n < 100; n++) store.put(ENTRY.result, keyOf(`${i} ${n}`), Buffer.from(`${i}/${n}`))
  }
  await Promise.all(stores.map(store => store.close()))
  const all = Store.open(folder)
  for (let i = 0; i < 3; i++) for (let n = 0; n < 100; n++) assert.equal(read(all, `${i} ${n}`), `${i}/${n}`)
})

test('many entries are found after the table has grown', async () => {
  const folder = temporary()
  const names = Array.from({ length: 20_000 }, (_, i) => `entry ${i}`)
  await filled(folder, names)
  const store = Store.open(folder)
  assert.equal(store.table.size, names.length)
  for (const name of names) assert.equal(read(store, name), `value of ${name}`)
})

test('a store is refused when it is of another version, and never misread', async () => {
  const folder = temporary()
  await filled(folder, ['a'], 'old')
  writeFileSync(join(folder, 'format'), 'millrace store 7\n')
  assert.throws(() => Store.open(folder), { code: 'MR_STORE_VERSION', message: /version 7/ })
  writeFileSync(join(folder, 'format'), 'something else')
  assert.throws(() => Store.open(folder), { code: 'MR_STORE_VERSION' })
  rmSync(join(folder, 'format'))
  const keys = join(folder, 'segments', 'old.keys')
  const bytes = readFileSync(keys)
  bytes.writeUInt32LE(9, 8)
  writeFileSync(keys, bytes)
  assert.throws(() => Store.open(folder), { code: 'MR_STORE_VERSION', message: /version 9/ })
})

test('a read-only store is not changed', async () => {
  const folder = temporary()
  await filled(folder, ['a'])
  const before = readdirSync(folder, { recursive: true }).sort()
  const store = Store.open(folder, { isReadOnly: true })
  store.put(ENTRY.result, keyOf('b'), Buffer.from('two'))
  store.used(keyOf('a'))
  await store.close()
  assert.deepEqual(readdirSync(folder, { recursive: true }).sort(), before)
  const missing = Store.open(join(folder, 'nowhere'), { isReadOnly: true })
  assert.equal(read(missing, 'a'), null)
})

test('files that are cut at any byte lose results and give no wrong one', async () => {
  const folder = temporary()
  const names = ['a', 'b', 'c', 'd']
  const store = Store.open(folder, { name: 'cut' })
  for (const name of names) {
    store.put(ENTRY.result, keyOf(name), Buffer.from(`value of ${name}`))
    await store.flush()
  }
  await store.close()
  for (const kind of ['keys', 'data']) {
    const path = join(folder, 'segments', `cut.${kind}`)
    const whole = readFileSync(path)
    for (let length = whole.length - 1; length >= 0; length--) {
      truncateSync(path, length)
      const cut = Store.open(folder, { isReadOnly: true })
      for (const name of names)
        assert.ok([null, `value of ${name}`].includes(read(cut, name)), `${kind} ${length}`)
      await cut.close()
    }
    writeFileSync(path, whole)
  }
})

test('a byte that changed makes its result unknown', async () => {
  const folder = temporary()
  await filled(folder, ['a', 'b', 'c'], 'one')
  for (const kind of ['keys', 'data']) {
    const path = join(folder, 'segments', `one.${kind}`)
    const whole = readFileSync(path)
    for (let at = kind === 'keys' ? 128 : 0; at < whole.length; at++) {
      const bytes = Buffer.from(whole)
      bytes[at] = (bytes[at] as number) ^ 0x41
      writeFileSync(path, bytes)
      const store = Store.open(folder, { isReadOnly: true })
      for (const name of ['a', 'b', 'c']) assert.ok([null, `value of ${name}`].includes(read(store, name)))
      await store.close()
    }
    writeFileSync(path, whole)
  }
})

test('an object that was written to is not given back', async () => {
  const folder = temporary()
  const file = join(folder, 'result.txt')
  writeFileSync(file, 'what the task made')
  const store = Store.open(join(folder, 'store'))
  const digest = digestOf('what the task made')
  assert.deepEqual(await store.objects.keepHeld(await store.objects.hold(file)), digest)
  const back = join(folder, 'back.txt')
  assert.equal(await store.objects.restore(digest, back), true)
  assert.equal(readFileSync(back, 'utf8'), 'what the task made')
  rmSync(back)
  writeFileSync(store.objects.pathOf(digest), 'WHAT THE TASK MADE')
  assert.equal(await store.objects.restore(digest, back), false)
  assert.equal(await store.objects.restore(digest, back), false)
  assert.equal(statSync(back, { throwIfNoEntry: false }), undefined)
})

/** The run that wrote it is this process, which lives: as one that has ended. */
function asEnded(folder: string, segment: string): void {
  const keys = join(folder, 'segments', `${segment}.keys`)
  const bytes = readFileSync(keys)
  bytes.fill(0, 12, 128)
  writeFileSync(keys, bytes)
}

test('over its limit, a store loses what was not used for longest', async () => {
  const folder = temporary()
  let clock = 1_000_000_000_000
  const now = (): number => (clock += 60_000)
  const store = Store.open(folder, { now, name: 'first' })
  for (const name of ['old', 'older but used', 'middle', 'new']) {
    store.put(ENTRY.result, keyOf(name), Buffer.alloc(1000, name))
    await store.flush()
  }
  store.used(keyOf('older but used'))
  await store.close()
  asEnded(folder, 'first')
  const evicted = await evict(folder, 2500)
  assert.equal(evicted?.results, 2)
  const left = Store.open(folder)
  const there = ['old', 'older but used', 'middle', 'new'].filter(name => read(left, name) !== null)
  assert.deepEqual(there, ['older but used', 'new'])
})

test('what a run has used counts as new, and takes little room', async () => {
  const folder = temporary()
  const names = Array.from({ length: 1000 }, (_, n) => `n${n}`)
  const first = Store.open(folder, { name: '1', now: () => 1000_000 })
  for (const [n, one] of names.entries()) {
    first.put(ENTRY.result, keyOf(one), Buffer.alloc(100, 'x'))
    // Blocks of several sizes.
    if (n % 300 === 0) await first.flush()
  }
  await first.close()
  const second = Store.open(folder, { name: '2', now: () => 2000_000 })
  const used = names.filter((_, n) => n < 400 || n % 7 === 0)
  for (const one of [...used].reverse()) second.used(keyOf(one))
  await second.close()
  for (const one of ['1', '2']) asEnded(folder, one)
  const size = statSync(join(folder, 'segments', '2.data')).size
  assert.ok(size < 2000, `${size} bytes`)
  const store = Store.open(folder)
  assert.deepEqual(
    new Set([...store.usedBy('2')].map(hexOf)),
    new Set(used.map(one => hexOf(keyOf(one)))),
    'only those',
  )
  await evict(folder, 90_000)
  const left = Store.open(folder)
  const kept = names.filter(one => read(left, one) !== null)
  assert.ok(kept.length >= used.length && kept.length < names.length, String(kept.length))
  for (const one of used) assert.ok(kept.includes(one), one)
})

test('what a killed run has left of files that it was keeping goes with the next file that is kept', async () => {
  const folder = temporary()
  writeFileSync(join(folder, 'file'), 'content')
  const held = await Store.open(join(folder, 'store')).objects.hold(join(folder, 'file'))
  const [host] = held.path.slice(held.path.lastIndexOf('/') + 1).split('-')
  const left = join(folder, 'store', 'new', `${host}-999999999-1-abc`)
  writeFileSync(left, 'half')
  await Store.open(join(folder, 'store')).objects.put(digestOf('x'), Buffer.from('x'))
  while (existsSync(left)) await new Promise(resolve => setTimeout(resolve, 5))
  assert.ok(existsSync(held.path), 'what a run that lives holds stays')
})

test('objects go with the last result that needs them', async () => {
  const folder = temporary()
  const content = digestOf('content')
  let clock = 1_000_000_000_000
  const store = Store.open(folder, { now: () => (clock += 60_000), name: 'first' })
  await store.objects.put(content, Buffer.from('content'))
  store.put(ENTRY.result, keyOf('a'), Buffer.alloc(500, 'a'), [content])
  await store.flush()
  store.put(ENTRY.result, keyOf('b'), Buffer.alloc(500, 'b'))
  await store.close()
  assert.equal(read(Store.open(folder), 'a'), 'a'.repeat(500))
  const keys = join(folder, 'segments', 'first.keys')
  const bytes = readFileSync(keys)
  bytes.fill(0, 12, 128)
  writeFileSync(keys, bytes)
  await evict(folder, 900)
  const left = Store.open(folder)
  assert.equal(read(left, 'a'), null)
  assert.equal(read(left, 'b'), 'b'.repeat(500))
  assert.equal(await left.objects.has(content), false)
})
