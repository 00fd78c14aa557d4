// Anything killed at any point, the run itself too: the others end, nothing wrong is kept, nothing is left.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { configOf, folderOf, toolsOrReason, type Stage } from './support.ts'
import { eventually } from '../processes.ts'

const { skip } = await toolsOrReason()
const CLI = fileURLToPath(new URL('../../bin/millrace.js', import.meta.url))
const ROUNDS = Number(process.env['MILLRACE_KILL_ROUNDS'] ?? 8)

const grows = (name: string): Record<string, unknown>[] => [
  { name, committed: 'on_close', mode: 'no_update' },
]
const stages: Record<string, Stage> = {
  make: { out: ['numbers'], rules: grows('numbers') },
  twice: { in: ['numbers'], out: ['doubled'], rules: grows('doubled') },
  add: { in: ['doubled'], out: ['sum'] },
}
const steps = {
  make: '(for i in 1 2 3 4 5 6 7 8; do seq 1 500; sleep 0.02; done; until [ -e "$MILLRACE_PLACE/go" ]; do sleep 0.02; done) > numbers',
  twice: `sh -c "awk '{ print 2 * \\$1 }' < numbers; exit \\$?" > doubled`,
  add: `awk '{ s += $1 } END { print s }' doubled > sum`,
}
const RIGHT = `${8 * 500 * 501}\n`

/** All that belongs to a run: every process of it has the place in its environment. */
const processesOf = (place: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        const dead = /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
        return !dead && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`MILLRACE_PLACE=${place}\0`)
      } catch {
        return false
      }
    })
    .map(Number)

const nameOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').slice(0, 80)
  } catch {
    return 'gone'
  }
}

const killQuietly = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // it has ended by itself
  }
}

test('anything killed at any point of a run', { skip, timeout: 240_000 }, async () => {
  const chances = fc.sample(fc.tuple(fc.nat(250), fc.nat()), ROUNDS)
  const ends = { right: 0, failed: 0, abandoned: 0 }
  for (const [round, [moment, number]] of chances.entries()) {
    const place = folderOf({ 'Config.json': configOf(stages, { permanent: ['sum'] }) })
    const argv = Object.entries(steps).map(([name, line]) => `--step=${name}=${line}`)
    const run = spawn(process.execPath, [CLI, 'stream', 'run', 'Config.json', ...argv], {
      cwd: place,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let told = ''
    run.stderr.on('data', (part: Buffer) => (told += part.toString()))
    run.stdout.resume()
    const ended = new Promise<number | null>(resolve => run.on('close', code => resolve(code)))
    await eventually(() => processesOf(place).length > 0 || run.exitCode !== null)
    await sleep(moment)
    const all = processesOf(place)
    const any = all[number % all.length]
    const victim =
      [run.pid, all.find(pid => nameOf(pid).includes('seq 1 500')), any, any][round % 4] ?? run.pid!
    const what = `round ${round}, killed ${victim === run.pid ? 'the run' : nameOf(victim)}`
    killQuietly(victim)
    writeFileSync(join(place, 'go'), '') // so that nothing had ended by itself before
    const code = await Promise.race([ended, sleep(90_000, 'hangs')])
    assert.notEqual(code, 'hangs', `${what}: it hangs\n${told}`)
    const clean = await eventually(() => processesOf(place).length === 0)
    const living = processesOf(place)
    for (const pid of living) killQuietly(pid)
    assert.ok(clean, `${what}: still there: ${living.map(nameOf).join(', ')}\n${told}`)
    const left = (): string[] => readdirSync('/dev/shm').filter(name => name.includes(`${run.pid}.`))
    assert.ok(await eventually(() => left().length === 0), `${what}: left in memory: ${left().join(', ')}`)
    const sum = existsSync(join(place, 'sum')) ? readFileSync(join(place, 'sum'), 'utf8') : undefined
    assert.ok(sum === undefined || sum === RIGHT, `${what}: kept ${sum}\n${told}`)
    if (code === 0) assert.equal(sum, RIGHT, `${what}\n${told}`)
    else if (victim !== run.pid) assert.match(told, /signal|killed|exit code|Input\/output error/i, what)
    ends[victim === run.pid ? 'abandoned' : code === 0 ? 'right' : 'failed']++
  }
  assert.ok(ends.abandoned > 0 && ends.failed > 0, JSON.stringify(ends))
})
