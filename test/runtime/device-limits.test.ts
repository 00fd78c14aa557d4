import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonLines, makeFolder, millrace } from '../cli/folder.ts'

const APP = `
import { writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { task, main, IN, FILE_OUT } from 'millrace'
export const save = task({ name: 'save', io: true, params: [IN, FILE_OUT], bandwidth: 50, size: 1000 }, async (n, path) => {
  await writeFile(path, Buffer.alloc(1000, n))
  await setTimeout(20)
})
main(() => {
  for (let n = 0; n < 12; n++) save(n, 'out/' + n)
})
`

const machine = (...devices: string[]): string =>
  `nodes:\n  - storage:\n${devices.map(one => `      - ${one}\n`).join('')}`

/** The most that tasks held of each device at one time, by its name. */
function mostHeld(events: ReturnType<typeof jsonLines>): Record<string, number> {
  const devices = (events.find(({ type }) => type === 'run-started')?.['devices'] ?? []) as { name: string }[]
  const running = new Map<unknown, string>()
  const most: Record<string, number> = {}
  for (const { type, task, device } of events) {
    if (type === 'started' && typeof device === 'number') {
      const name = devices[device]?.name ?? ''
      running.set(task, name)
      const held = [...running.values()].filter(one => one === name).length * 50
      most[name] = Math.max(most[name] ?? 0, held)
    } else if (type === 'finished') running.delete(task)
  }
  return most
}

/** These devices were used, and none beyond its bandwidth; how many tasks meet at one time depends on the machine. */
function assertLimit(held: Record<string, number>, ...names: string[]): void {
  assert.deepEqual(Object.keys(held).sort(), names.sort())
  for (const name of names) assert((held[name] ?? 0) <= 200, `${name}: ${held[name]}`)
}

for (const [title, device] of [
  ['a capacity', '{ name: ssd, path: ssd, bandwidth: 200MB/s, capacity: 1GB }'],
  ['no capacity', '{ name: ssd, path: ssd, bandwidth: 200MB/s }'],
] as const) {
  test(`the limit of the only device holds, with ${title}`, async () => {
    const folder = makeFolder({ 'app.mjs': APP, 'machine.yaml': machine(device), 'ssd/.keep': '' })
    const { code, stdout, stderr } = await millrace(folder, [
      'run',
      'app.mjs',
      '--machine',
      'machine.yaml',
      '--json',
    ])
    assert.equal(code, 0, stderr)
    assertLimit(mostHeld(jsonLines(stdout)), 'ssd')
  })
}

test('what has no room on the only device goes to the working folder, at the bandwidth of the disk that both are on', async () => {
  const device = '{ name: ssd, path: ssd, bandwidth: 200MB/s, capacity: 4kB }'
  const folder = makeFolder({ 'app.mjs': APP, 'machine.yaml': machine(device), 'ssd/.keep': '' })
  const args = ['run', 'app.mjs', '--machine', 'machine.yaml', '--flush', 'off', '--json']
  const { code, stdout, stderr } = await millrace(folder, args)
  assert.equal(code, 0, stderr)
  const events = jsonLines(stdout)
  assertLimit(mostHeld(events), 'ssd', 'disk')
  const all = events.flatMap(({ type }) => (type === 'started' ? [1] : type === 'finished' ? [-1] : []))
  let running = 0
  assert(Math.max(...all.map(by => (running += by))) <= 4, 'of both together')
})

test('a device whose folder is missing is made and used', async () => {
  const folder = makeFolder({
    'app.mjs': APP,
    'machine.yaml': machine('{ name: ssd, path: new, bandwidth: 200MB/s }'),
  })
  const { code, stdout, stderr } = await millrace(folder, [
    'run',
    'app.mjs',
    '--machine',
    'machine.yaml',
    '--json',
  ])
  assert.equal(code, 0, stderr)
  assertLimit(mostHeld(jsonLines(stdout)), 'ssd')
  assert(existsSync(join(folder, 'new')))
})

for (const [title, path, message] of [
  [
    'is not there, nor the folder above it',
    'nowhere/below',
    /ssd cannot be used: .*nowhere\/below is not there/,
  ],
  ['is a file', 'file', /ssd cannot be used: .*file is not a folder/],
] as const) {
  test(`a device that ${title} is refused`, async () => {
    const folder = makeFolder({
      'app.mjs': APP,
      'machine.yaml': machine(`{ name: ssd, path: ${path}, bandwidth: 200MB/s }`),
    })
    writeFileSync(join(folder, 'file'), '')
    const { code, stderr } = await millrace(folder, ['run', 'app.mjs', '--machine', 'machine.yaml'])
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
    assert.match(stderr, /MR_MACHINE/)
  })
}

const GROWING = `
import { mkdir, open, readdir, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { task, main, IN, FILE_OUT } from 'millrace'
export const save = task({ name: 'save', io: true, params: [IN, IN, FILE_OUT], bandwidth: 'auto' }, async (n, begun, path) => {
  await writeFile(begun + '/' + n, '')
  const file = await open(path, 'w')
  // None ends before many have begun: only that its file grows can be seen of it.
  for (let round = 0; (await readdir(begun)).length < 20; round++) {
    if (round > 3000) throw new Error('the others never began')
    await file.write(Buffer.alloc(128 * 1024))
    await setTimeout(10)
  }
  await file.close()
})
main(async () => {
  await mkdir('begun')
  for (let n = 0; n < 40; n++) save(n, process.cwd() + '/begun', 'out/' + n)
})
`

test('a device that serves many should be given many before the first task has ended', async () => {
  const device = '{ name: ssd, path: ssd, bandwidth: 2GB/s }'
  const folder = makeFolder({ 'app.mjs': GROWING, 'machine.yaml': machine(device), 'ssd/.keep': '' })
  const { code, stderr } = await millrace(
    folder,
    ['run', 'app.mjs', '--machine', 'machine.yaml', '--io-executors', '64'],
    { UV_THREADPOOL_SIZE: '16' },
  )
  assert.equal(code, 0, stderr)
})
