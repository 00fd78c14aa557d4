// What outlives whom: steps end with the Millrace that started them, builds that are not used are removed.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { removeKilled, removeUnused } from '../../src/native/build.ts'
import { configOf, folderOf, run, pipe, toolsOrReason } from './support.ts'
import { eventually } from '../processes.ts'

const { skip } = await toolsOrReason()
const CLI = fileURLToPath(new URL('../../bin/millrace.js', import.meta.url))

/** The shell that outlives a run. */
const watchOf = (run: number): number =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .find(pid => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return line.includes('read word') && line.includes(`.run${run}.`)
      } catch {
        return false
      }
    })!

const lives = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

describe('when millrace stream run is killed', { skip, timeout: 240_000 }, () => {
  test('all processes of its steps end, also those that ignore signals or left their group', async () => {
    const folder = folderOf({ 'Config.json': configOf(pipe) })
    const note = (name: string): string => `echo $$ > ${join(folder, name)}`
    const stubborn = `trap '' TERM HUP; ${note('stubborn')}; while :; do sleep 0.1; done`
    const away = `setsid sh -c '${note('away')}; trap "" TERM; while :; do sleep 0.1; done' &`
    const steps = [`--step=make=${note('make')}; ${away} sleep 60`, `--step=add=${stubborn}`]
    const argv = [CLI, 'stream', 'run', join(folder, 'Config.json'), ...steps]
    const child = spawn(process.execPath, argv, { cwd: folder, stdio: 'ignore' })
    const pidOf = (name: string): number =>
      existsSync(join(folder, name)) ? Number(readFileSync(join(folder, name), 'utf8')) : 0
    const names = ['make', 'stubborn', 'away']
    assert.ok(await eventually(() => names.every(name => pidOf(name) > 0)), 'the steps have begun')
    child.kill('SIGKILL')
    const pids = names.map(pidOf)
    const ended = await eventually(() => !pids.some(lives))
    for (const pid of pids) if (lives(pid)) process.kill(pid, 'SIGKILL')
    assert.ok(ended, `${names.filter((_, i) => lives(pids[i]!)).join(', ')} still lived`)
    const left = (): string[] => readdirSync('/dev/shm').filter(name => name.includes(`${child.pid}.`))
    assert.ok(await eventually(() => left().length === 0), `left in memory: ${left().join(', ')}`)
  })
})

test('a permanent file that was complete when its run was killed is in its place', { skip }, async () => {
  const folder = folderOf({ 'Config.json': configOf(pipe, { permanent: ['numbers', 'sum'] }) })
  const steps = [
    '--step=make=seq 5 > numbers; touch $MILLRACE_PLACE/made',
    '--step=add=echo half; sleep 60 > sum',
  ]
  const argv = [CLI, 'stream', 'run', join(folder, 'Config.json'), ...steps]
  const child = spawn(process.execPath, argv, { cwd: folder, stdio: 'ignore' })
  assert.ok(await eventually(() => existsSync(join(folder, 'made'))))
  child.kill('SIGKILL')
  assert.ok(await eventually(() => existsSync(join(folder, 'numbers'))), 'it was lost')
  assert.equal(readFileSync(join(folder, 'numbers'), 'utf8'), '1\n2\n3\n4\n5\n')
  const left = (): string[] => readdirSync('/dev/shm').filter(name => name.includes(`${child.pid}.`))
  assert.ok(await eventually(() => left().length === 0), `left in memory: ${left().join(', ')}`)
  assert.equal(existsSync(join(folder, 'sum')), false, 'half a file was kept')
})

test(
  'what was complete when a run and its watch were killed is brought to its place by the next run',
  { skip, timeout: 240_000 },
  async () => {
    const folder = folderOf({ 'Config.json': configOf(pipe, { permanent: ['numbers', 'sum'] }) })
    const until = (name: string): string => `until [ -e $MILLRACE_PLACE/${name} ]; do sleep 0.02; done`
    const steps = [
      `--step=make=touch $MILLRACE_PLACE/begun; ${until('go')}; seq 5 > numbers; touch $MILLRACE_PLACE/made`,
      '--step=add=echo half > sum; sleep 60 >> sum',
    ]
    const argv = [CLI, 'stream', 'run', join(folder, 'Config.json'), ...steps]
    const child = spawn(process.execPath, argv, { cwd: folder, stdio: 'ignore' })
    assert.ok(await eventually(() => existsSync(join(folder, 'begun'))))
    child.kill('SIGSTOP') // so that it brings nothing itself
    process.kill(watchOf(child.pid!), 'SIGKILL')
    writeFileSync(join(folder, 'go'), '')
    assert.ok(await eventually(() => existsSync(join(folder, 'made'))))
    assert.equal(existsSync(join(folder, 'numbers')), false)
    child.kill('SIGKILL')
    const boards = (): string[] => readdirSync('/dev/shm').filter(name => name.includes(`.run${child.pid}.`))
    assert.equal(boards().length, 1)
    // its steps may take a moment to end, and a run of another test may be the next
    for (let tries = 0; boards().length > 0 && tries < 60; tries++, await sleep(200))
      await run({ stages: pipe, steps: { make: 'true', add: 'true' } })
    assert.ok(await eventually(() => existsSync(join(folder, 'numbers'))), 'it was lost')
    assert.equal(readFileSync(join(folder, 'numbers'), 'utf8'), '1\n2\n3\n4\n5\n')
    assert.equal(existsSync(join(folder, 'sum')), false, 'half a file was kept')
    const left = (): string[] => readdirSync('/dev/shm').filter(name => name.includes(`${child.pid}.`))
    assert.ok(await eventually(() => left().length === 0), `left in memory: ${left().join(', ')}`)
  },
)

describe('a size that was not final', { skip, timeout: 240_000 }, () => {
  test('a step that trusted it makes the run fail, with a sentence that says what to do', async () => {
    const script = `const fs = require('fs'), fd = fs.openSync('numbers'), { size } = fs.fstatSync(fd);
      fs.writeFileSync(process.env.MILLRACE_PLACE + '/asked', '');
      fs.readSync(fd, Buffer.alloc(size), 0, size, null); fs.closeSync(fd)`
    const wait = 'while [ ! -e $MILLRACE_PLACE/asked ]; do sleep 0.01; done'
    const steps = {
      make: `{ seq 1 100; ${wait}; seq 1 100; } > numbers`,
      add: [process.execPath, '-e', script],
    }
    const { code, told } = await run({ stages: pipe, steps })
    assert.equal(code, 1)
    assert.match(told, /step 'add' may have read only a part of 'numbers'.*give it the mode update/)
    assert.match(told, /^failed \S+ after [^]*in doubt: the results of a step may be wrong/m)
    assert.match(told, /tasks +2 ok, of 2/)
  })
})

test('builds that were not used for two weeks are removed, others are not', async () => {
  const cache = folderOf({})
  const before = process.env['XDG_CACHE_HOME']
  process.env['XDG_CACHE_HOME'] = cache
  try {
    const folder = join(cache, 'millrace')
    const old = new Date(Date.now() - 20 * 86_400_000)
    for (const name of ['stream-0123456789abcdef', 'stream-fedcba9876543210', 'up', 'stream-mine']) {
      mkdirSync(join(folder, name), { recursive: true })
      writeFileSync(join(folder, name, 'file'), '')
      if (name !== 'stream-fedcba9876543210') utimesSync(join(folder, name), old, old)
    }
    await removeUnused()
    assert.deepEqual(readdirSync(folder).toSorted(), ['stream-fedcba9876543210', 'stream-mine', 'up'])
  } finally {
    if (before === undefined) delete process.env['XDG_CACHE_HOME']
    else process.env['XDG_CACHE_HOME'] = before
  }
})

test('what a killed build left is removed by the next one, that of a running one is not', async () => {
  const cache = folderOf({})
  const before = process.env['XDG_CACHE_HOME']
  process.env['XDG_CACHE_HOME'] = cache
  try {
    const folder = join(cache, 'millrace')
    const killed = spawn('true')
    await once(killed, 'close')
    const builders = [
      ['stream-0123456789abcdef', killed.pid!, hostname()],
      ['stream-0000000000000000', process.pid, hostname()],
      ['stream-1111111111111111', killed.pid!, 'another-machine'],
    ] as const
    for (const [name, pid, host] of builders) {
      mkdirSync(join(folder, `${name}.${pid}-0`), { recursive: true })
      writeFileSync(join(folder, `${name}.${pid}-0`, 'file'), '')
      writeFileSync(join(folder, `${name}.lock`), `${host} ${pid} ${name}.${pid}-0`)
    }
    await removeKilled()
    assert.deepEqual(
      readdirSync(folder).toSorted(),
      builders
        .slice(1)
        .flatMap(([name, pid]) => [`${name}.${pid}-0`, `${name}.lock`])
        .toSorted(),
    )
  } finally {
    if (before === undefined) delete process.env['XDG_CACHE_HOME']
    else process.env['XDG_CACHE_HOME'] = before
  }
})
