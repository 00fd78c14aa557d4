import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { ownCpus } from '../../src/node/cpus/own-cpus.ts'
import { SpawnedProcess } from '../../src/node/processes/spawned-process.ts'
import type { CommandRequest } from '../../src/node/processes/command-process.ts'
import { Spawner } from '../../src/node/processes/spawner.ts'
import { RequestWriter, readReplies } from '../../src/node/processes/spawner-wire.ts'
import { spawnTool } from '../../src/native/spawn-tool.ts'
import { until } from '../runtime/embedded.ts'
import { ran } from './ran.ts'
import { isAlive } from '../processes.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-spawn-'))
let spawner: Spawner
let losses = 0
// The spawner does not keep a process alive; live tasks do.
const alive = setInterval(() => {}, 1000)
before(async () => {
  spawner = new Spawner(await spawnTool(), () => losses++)
})
after(() => {
  clearInterval(alive)
  spawner.end(true)
  rmSync(folder, { recursive: true, force: true })
})

let files = 0
const newFile = (): string => join(folder, `f${++files}`)

const request = (argv: string[], rest: Partial<CommandRequest> = {}): CommandRequest => ({
  argv,
  cwd: folder,
  env: process.env as Record<string, string>,
  stdin: null,
  stdout: null,
  stderr: null,
  log: newFile(),
  cpus: null,
  limits: null,
  lane: null,
  ...rest,
})
const run = (argv: string[], rest: Partial<CommandRequest> = {}) =>
  ran(new SpawnedProcess(spawner), request(argv, rest))

const sh = (script: string, rest: Partial<CommandRequest> = {}) => run(['sh', '-c', script], rest)

test('a program that prints nothing leaves no log; one that prints leaves what it printed', async () => {
  const silent = newFile()
  assert.equal((await run(['true'], { log: silent })).printed, false)
  assert.equal(existsSync(silent), false)
  const loud = newFile()
  const { printed } = await sh('echo one; echo two >&2; echo three', { log: loud })
  assert.equal(printed, true)
  assert.equal(readFileSync(loud, 'utf8'), 'one\ntwo\nthree\n')
})

test('logs of silent and loud programs in any order stay apart', async () => {
  for (let i = 0; i < 30; i++) {
    const logs = [newFile(), newFile(), newFile()]
    const texts = logs.map((_, j) => ((i * 7 + j * 3) % 4 === 0 ? `text ${i} ${j}` : ''))
    await Promise.all(logs.map((log, j) => sh(texts[j] ? `echo ${texts[j]}` : ':', { log })))
    for (const [j, log] of logs.entries()) {
      if (texts[j]) assert.equal(readFileSync(log, 'utf8'), `${texts[j]}\n`)
      else assert.equal(existsSync(log), false)
    }
  }
})

test('a log that is there already is added to', async () => {
  const log = newFile()
  writeFileSync(log, 'before\n')
  await sh('echo after', { log })
  assert.equal(readFileSync(log, 'utf8'), 'before\nafter\n')
})

test('the log of a program that runs can be read', async () => {
  const log = newFile()
  const stop = newFile()
  const ended = sh(`echo so far; while [ ! -e ${stop} ]; do sleep 0.02; done; echo end`, { log })
  await until(() => existsSync(log) && readFileSync(log, 'utf8') === 'so far\n', 'the log')
  writeFileSync(stop, '')
  await ended
  assert.equal(readFileSync(log, 'utf8'), 'so far\nend\n')
})

test('what was asked for, written, used and held is counted, with that of children that were waited for', async () => {
  const data = newFile()
  writeFileSync(data, Buffer.alloc(3_000_000, 1))
  const { usage, took } = await sh(
    `cat ${data} > ${newFile()}; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done`,
  )
  assert(usage)
  assert(usage.askedBytes >= 3_000_000 && usage.askedBytes < 3_200_000, String(usage.askedBytes))
  assert(usage.writtenBytes >= 3_000_000 && usage.writtenBytes < 3_100_000, String(usage.writtenBytes))
  assert(usage.readBytes <= usage.askedBytes)
  assert(usage.cpuMs > 0)
  assert(usage.peakBytes > 100_000 && usage.peakBytes < 1e9)
  assert(took > 0)
})

test('limits hold: a file that grows too large, and too many open files', async () => {
  const large = await sh(`head -c 200000 /dev/zero > ${newFile()}`, { limits: { fileSize: 100_000 } })
  assert.notEqual(large.exitCode, 0)
  const out = newFile()
  await sh('ulimit -n; ulimit -t; ulimit -v', {
    stdout: out,
    limits: { openFiles: 33, cpuTime: 77, memory: 2 ** 30 },
  })
  assert.deepEqual(readFileSync(out, 'utf8').trim().split('\n'), ['33', '77', String(2 ** 20)])
})

test('a program is bound to the CPUs that are named', async () => {
  const cpus = ownCpus()
  assert(cpus.length > 0)
  for (const cpu of cpus.slice(0, 2)) {
    const out = newFile()
    await run(['grep', 'Cpus_allowed_list', '/proc/self/status'], { stdout: out, cpus: [cpu] })
    assert.deepEqual(ownCpus(readFileSync(out, 'utf8')), [cpu])
  }
})

test('lists of CPUs are read', () => {
  assert.deepEqual(ownCpus('Cpus_allowed_list:\t0-2,5,7-8\n'), [0, 1, 2, 5, 7, 8])
  assert.deepEqual(ownCpus(''), [])
})

test('a program sees the environment that it is given, however many there are', async () => {
  const results = Array.from({ length: 300 }, async (_, i) => {
    const out = newFile()
    const env = { ...(process.env as Record<string, string>), WHICH: `${i} é\n` }
    await sh('printf %s "$WHICH"', { env, stdout: out })
    return readFileSync(out, 'utf8')
  })
  assert.deepEqual(
    await Promise.all(results),
    results.map((_, i) => `${i} é\n`),
  )
})

test('a program is looked for each time: another may have come, or one may have gone', async () => {
  const [first, last] = ['first', 'last'].map(name => join(folder, name)) as [string, string]
  const env = { PATH: `${first}:${last}:/usr/bin:/bin` }
  const put = (where: string): void => {
    mkdirSync(where, { recursive: true })
    writeFileSync(join(where, 'tool'), `#!/bin/sh\necho ${where}\n`, { mode: 0o755 })
  }
  const said = async (): Promise<string> => {
    const out = newFile()
    await run(['tool'], { env, stdout: out, lane: 1 })
    return readFileSync(out, 'utf8').trim()
  }
  put(last)
  assert.equal(await said(), last)
  put(first)
  assert.equal(await said(), first)
  rmSync(first, { recursive: true })
  assert.equal(await said(), last)
  rmSync(last, { recursive: true })
  await assert.rejects(said(), /tool/)
})

test('any words arrive as they are', async () => {
  const word = fc.string({ unit: 'binary' }).map(text => text.replaceAll('\0', '').toWellFormed())
  await fc.assert(
    fc.asyncProperty(fc.array(word, { maxLength: 5 }), async words => {
      const out = newFile()
      await run(['printf', '%s\\0', 'first', ...words], { stdout: out })
      assert.deepEqual(readFileSync(out, 'utf8').split('\0').slice(0, -1), ['first', ...words])
    }),
    { numRuns: 40 },
  )
})

test('no descriptor of the spawner reaches a program', async () => {
  const out = newFile()
  await run(['ls', '/proc/self/fd'], { stdout: out })
  // 3 is the folder that ls reads.
  assert.deepEqual(readFileSync(out, 'utf8').trim().split('\n'), ['0', '1', '2', '3'])
})

test('replies are read in whatever pieces they come', () => {
  const refused = (id: number): Buffer => {
    const bytes = Buffer.alloc(14)
    bytes.writeUInt32LE(10, 0)
    bytes.write('F', 4)
    bytes.writeUInt32LE(id, 5)
    bytes[9] = 7
    bytes.writeInt32LE(2, 10)
    return bytes
  }
  fc.assert(
    fc.property(
      fc.array(fc.nat(1000), { maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 40 })),
      (ids, cuts) => {
        const all = Buffer.concat(ids.map(refused))
        const seen: number[] = []
        let rest = Buffer.alloc(0)
        const feed = (part: Buffer): void => {
          const bytes = Buffer.concat([rest, part])
          const used = readReplies(bytes, {
            ended: () => assert.fail(),
            cameBack: () => assert.fail(),
            refused: (id, { stage, errno }) => {
              assert.deepEqual([stage, errno], ['exec', 2])
              seen.push(id)
            },
          })
          rest = bytes.subarray(used)
        }
        let at = 0
        for (const cut of cuts) {
          feed(all.subarray(at, at + cut))
          at = Math.min(all.length, at + cut)
        }
        feed(all.subarray(at))
        assert.deepEqual(seen, ids)
      },
    ),
  )
})

test('when the coordinator is gone everything that was started ends, also what left its group', async () => {
  const child = spawn(await spawnTool(), [], { stdio: ['pipe', 'ignore', 2, 1], detached: true })
  const pids = newFile()
  const writer = new RequestWriter()
  const script = `trap "" TERM HUP; setsid sh -c 'echo $$ >> ${pids}; exec sleep 3600' & sleep 3600 & echo $! >> ${pids}; wait`
  writer.run(1, request(['sh', '-c', script]), [])
  child.stdin?.write(writer.take() as Buffer)
  await until(() => existsSync(pids) && readFileSync(pids, 'utf8').trim().split('\n').length === 2, 'both')
  child.stdin?.end()
  const numbers = readFileSync(pids, 'utf8').trim().split('\n').map(Number)
  await until(() => numbers.every(pid => !isAlive(pid)), 'their end')
})

test('a spawner that is killed takes its programs with it, and says so to those that wait', async () => {
  let lost = 0
  const own = new Spawner(await spawnTool(), () => lost++)
  const pids = newFile()
  const ended = ran(
    new SpawnedProcess(own),
    request(['sh', '-c', `echo $$ $PPID > ${pids}; exec sleep 3600`]),
  )
  await until(() => existsSync(pids) && readFileSync(pids, 'utf8').endsWith('\n'), 'the program')
  const [program = 0, parent = 0] = readFileSync(pids, 'utf8').trim().split(' ').map(Number)
  process.kill(parent, 'SIGKILL')
  await assert.rejects(ended, /the process that starts programs has ended/)
  assert.equal(lost, 1)
  await until(() => !isAlive(program), 'the end of the program')
})

test('nothing was lost on the way', () => {
  assert.equal(losses, 0)
  assert.deepEqual(
    readdirSync(folder).filter(name => name.startsWith('#')),
    [],
  )
})
