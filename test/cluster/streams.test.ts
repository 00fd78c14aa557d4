import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'
import { streamRunOnNodes } from '../../src/runtime/streams/stream-run.ts'
import { packageVersion } from '../../src/runtime/version.ts'
import type { StepCommand } from '../../src/stream/index.ts'
import { configOf, ears, folderOf, read, toolsOrReason, plainIn, streamsOf } from '../stream/support.ts'
import type { Stage } from '../stream/support.ts'

const { skip } = await toolsOrReason()
const growing = { committed: 'on_close', mode: 'no_update' }

interface Given {
  readonly stages: Record<string, Stage>
  readonly commands: readonly StepCommand[]
  readonly nodes?: number
  readonly permanent?: string[]
  readonly files?: Record<string, string>
  readonly signal?: AbortSignal
  readonly during?: (place: string) => Promise<void>
}

async function run(given: Given): Promise<{ code: number; place: string; told: string }> {
  const { stages, commands, nodes = 2, permanent = ['out'], files = {} } = given
  const place = folderOf({ 'Config.json': configOf(stages, { permanent }), ...files })
  const io = ears()
  const before = new Set(readdirSync('/dev/shm'))
  const options = { place, ...plainIn(place), version: packageVersion(), limit: 60 }
  const specs = parseNodes(`local:${nodes}`, () => [])
  const ran = streamRunOnNodes(
    join(place, 'Config.json'),
    commands,
    specs,
    options,
    streamsOf(io),
    given.signal,
  )
  await given.during?.(place)
  const code = await ran
  await gone(before)
  return { code, place, told: io.told() }
}

/** What nodes leave in memory goes with them; one that was killed is cleaned up by its watchdog. */
async function gone(before: ReadonlySet<string>): Promise<void> {
  const left = (): string[] =>
    readdirSync('/dev/shm').filter(
      name => !before.has(name) && /^millrace[.-].*(?:test\.run|\bdir\.)/.test(name),
    )
  for (let tries = 0; left().length > 0 && tries < 400; tries++) await sleep(50)
  assert.deepEqual(left(), [])
}

const on = (node: number, step: string, line: string, times?: number): StepCommand => ({
  step,
  run: line,
  nodes: [`local${node}`],
  ...(times === undefined ? {} : { times }),
})

describe('files that stream between nodes', { skip, timeout: 300_000 }, () => {
  const pipe: Record<string, Stage> = {
    make: { out: ['f'], rules: [{ name: 'f', ...growing }] },
    use: { in: ['f'], out: ['out'] },
  }

  test('a reader on another node reads as the file grows', async () => {
    const { code, place, told } = await run({
      stages: pipe,
      commands: [
        // The writer goes on when the reader has seen the first line: without streaming it would wait for ever.
        on(1, 'make', 'exec > f; echo 1; until [ -e $MILLRACE_PLACE/seen ]; do sleep 0.02; done; echo 2'),
        on(2, 'use', '(read x; echo $x; : > $MILLRACE_PLACE/seen; cat) < f > out'),
      ],
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'out'), '1\n2\n')
  })

  test('bytes are the same: 40 MB in odd pieces', async () => {
    const { code, place, told } = await run({
      stages: pipe,
      commands: [
        on(
          1,
          'make',
          'head -c 40000007 /dev/urandom | tee $MILLRACE_PLACE/copy | dd bs=7777 iflag=fullblock of=f 2> /dev/null',
        ),
        on(2, 'use', 'sha256sum < f > out'),
      ],
    })
    assert.equal(code, 0, told)
    const expected = createHash('sha256')
      .update(readFileSync(join(place, 'copy')))
      .digest('hex')
    assert.equal(read(place, 'out').split(' ')[0], expected)
  })

  test('what is written over before the end is what later readers see', async () => {
    const header = `python3 -c '
f = open("f", "wb", buffering=0)
f.write(b"....")
for i in range(2000): f.write(b"%6d" % i)
f.seek(0); f.write(b"HEAD"); f.close()'`
    const { code, place, told } = await run({
      stages: {
        make: {
          out: ['f', 'g'],
          rules: [
            { name: 'f', ...growing },
            { name: 'g', committed: 'on_close' },
          ],
        },
        use: { in: ['f', 'g'], out: ['out'] },
      },
      commands: [
        on(1, 'make', `${header}; echo > g`),
        on(2, 'use', 'cat g > /dev/null; head -c 4 f > out; wc -c < f >> out'),
      ],
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'out'), 'HEAD12004\n')
  })

  test('one to many: each node that reads gets all', async () => {
    const stages: Record<string, Stage> = {
      make: {
        out: ['f', 'd'],
        rules: [
          { name: 'f', ...growing },
          { dirname: 'd', committed: 'on_close' },
        ],
      },
    }
    const commands = [on(1, 'make', 'seq 1 100000 > f; mkdir d; for i in 1 2 3; do seq $i > d/$i; done')]
    for (const node of [1, 2, 3, 4]) {
      stages[`use${node}`] = { in: ['f', 'd'], out: [`out${node}`] }
      commands.push(on(node, `use${node}`, `cat d/1 d/2 d/3 f | cksum > out${node}`))
    }
    const { code, place, told } = await run({ stages, commands, nodes: 4, permanent: ['out*'] })
    assert.equal(code, 0, told)
    const sums = [1, 2, 3, 4].map(node => read(place, `out${node}`))
    assert.equal(new Set(sums).size, 1)
    assert.match(sums[0] ?? '', / 588907\n$/)
  })

  test('many to one: a directory that steps on three nodes fill is listed when it has all files', async () => {
    const { code, place, told } = await run({
      stages: {
        map: { out: ['parts'], rules: [{ dirname: 'parts', committed: 'on_n_files', n_files: 30 }] },
        reduce: { in: ['parts'], out: ['out'] },
      },
      commands: [
        {
          step: 'map',
          run: 'mkdir -p parts; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i > parts/$MILLRACE_INSTANCE.$i; done',
          nodes: ['local1', 'local2', 'local3'],
        },
        on(4, 'reduce', 'cat parts/* | sort -n | uniq -c > out; ls parts | wc -l >> out'),
      ],
      nodes: 4,
    })
    assert.equal(code, 0, told)
    assert.match(read(place, 'out'), /^(?: +3 \d+\n){10}30\n$/)
  })

  test('a chain over three nodes, with a rule that names another file', async () => {
    const { code, place, told } = await run({
      stages: {
        a: { out: ['x'], rules: [{ name: 'x', ...growing }] },
        b: {
          in: ['x'],
          out: ['y', 'z'],
          rules: [
            { name: 'y', committed: 'on_close' },
            { name: 'z', committed: 'on_file', file_deps: ['y'] },
          ],
        },
        c: { in: ['y', 'z'], out: ['out'] },
      },
      commands: [
        on(1, 'a', 'seq 1 50000 > x'),
        on(2, 'b', 'echo z > z; sort -rn x > y; sleep 0.1'),
        on(3, 'c', 'cat z y | md5sum > out'),
      ],
      nodes: 3,
    })
    assert.equal(code, 0, told)
    const text = `z\n${Array.from({ length: 50_000 }, (_, i) => `${50_000 - i}\n`).join('')}`
    assert.equal(read(place, 'out').split(' ')[0], createHash('md5').update(text).digest('hex'))
  })

  test('a file that is renamed into place, made shorter or removed and made again', async () => {
    for (const [make, expected] of [
      ['seq 1 100 > part; mv part f', '100'],
      ['seq 1 100 > g; : > h; seq 1 7 > g; mv g f', '7'],
    ]) {
      const { code, place, told } = await run({
        stages: { make: { out: ['f', 'g', 'h', 'part'] }, use: { in: ['f'], out: ['out'] } },
        commands: [on(1, 'make', make as string), on(2, 'use', 'tail -n 1 f > out')],
      })
      assert.equal(code, 0, told)
      assert.equal(read(place, 'out'), `${expected}\n`)
    }
  })

  test('steps on two nodes that write one file fail, and say why', async () => {
    const { code, told } = await run({
      stages: { make: { out: ['f'] }, use: { in: ['f'], out: ['out'] } },
      commands: [
        {
          step: 'make',
          run: 'sleep 0.2; echo $MILLRACE_INSTANCE > f; sleep 0.3',
          nodes: ['local1', 'local2'],
        },
        on(2, 'use', 'cat f > out'),
      ],
    })
    assert.equal(code, 1, told)
    assert.match(told, /MR_STREAM_WRITERS: steps on two nodes write it/)
  })

  test('so do they when no step reads the file: what is in its place is of one of them', async () => {
    const { code, told } = await run({
      stages: { make: { out: ['out', 'own*'] } },
      commands: [
        {
          step: 'make',
          run: 'echo $MILLRACE_INSTANCE > out; echo $MILLRACE_INSTANCE > own.$MILLRACE_INSTANCE',
          nodes: ['local1', 'local2'],
        },
      ],
      permanent: ['out', 'own*'],
    })
    assert.equal(code, 1, told)
    assert.match(told, /out: steps on local1 and local2 wrote it, .* \(MR_STREAM_WRITERS\)/)
    assert.doesNotMatch(told, /own\.\d: steps/)
  })

  test('a writer that fails gives its reader on another node an error, and nothing is kept', async () => {
    const { code, place, told } = await run({
      stages: pipe,
      commands: [on(1, 'make', '{ seq 1 20000; kill -9 $$; } > f'), on(2, 'use', 'cat f | sort -n > out')],
    })
    assert.equal(code, 1)
    assert.match(told, /step 'make' failed: killed by signal 9/)
    assert.equal(existsSync(join(place, 'out')), false, told)
  })

  test('steps without a node share one while its CPUs last', async () => {
    const { code, place, told } = await run({
      stages: pipe,
      commands: [
        { step: 'make', run: 'seq 1 10 > f' },
        { step: 'use', run: 'tail -n 1 f > out' },
      ],
    })
    assert.equal(code, 0, told)
    assert.equal(read(place, 'out'), '10\n')
  })

  test('an unknown node is refused before anything starts', async () => {
    const { code, told } = await run({
      stages: pipe,
      commands: [{ step: 'make', run: 'true', nodes: ['locl1'] }, on(2, 'use', 'true')],
    })
    assert.equal(code, 2)
    assert.match(told, /step 'make' is for a node 'locl1'.*\n?.*did you mean 'local1'\?/)
  })

  test('Ctrl-C ends the steps of all nodes', async () => {
    const stop = new AbortController()
    const { code } = await run({
      stages: pipe,
      commands: [on(1, 'make', ': > $MILLRACE_PLACE/began; sleep 100 > f'), on(2, 'use', 'cat f > out')],
      signal: stop.signal,
      during: async place => {
        while (!existsSync(join(place, 'began'))) await sleep(20)
        stop.abort()
      },
    })
    assert.equal(code, 130)
  })
})

describe('a node of a streaming workflow that is killed', { skip, timeout: 300_000 }, () => {
  const config = configOf(
    {
      make: { out: ['f'], rules: [{ name: 'f', ...growing }] },
      use: { in: ['f'], out: ['out'] },
    },
    { permanent: ['out'] },
  )
  const steps = {
    make: { run: '(seq 1 1000; : > $MILLRACE_PLACE/began; sleep 100) > f', nodes: ['local1'] },
    use: { run: 'cat f > out; : > $MILLRACE_PLACE/ended', nodes: ['local2'] },
  }
  const millrace = join(import.meta.dirname, '../../bin/millrace.js')

  for (const who of ['the node of the writer', 'the node of the reader', 'the coordinator']) {
    test(`${who}: nothing hangs, and nothing is left`, async () => {
      const place = folderOf({ 'Config.json': config, 'steps.json': JSON.stringify(steps) })
      const before = new Set(readdirSync('/dev/shm'))
      const args = [millrace, 'stream', 'run', 'Config.json', '--steps', 'steps.json', '--nodes', 'local:2']
      const child = spawn(process.execPath, args, { cwd: place, stdio: ['ignore', 'pipe', 'pipe'] })
      let told = ''
      child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()))
      const ended = new Promise<number | null>(resolve => child.on('close', resolve))
      while (!existsSync(join(place, 'began'))) await sleep(20)
      const nodes = childrenOf(child.pid as number).filter(pid => commandOf(pid).includes('stream node'))
      assert.equal(nodes.length, 2)
      const writer = nodes.findIndex(pid => treeOf(pid).some(one => commandOf(one).includes('sleep')))
      const victim =
        who === 'the coordinator' ? child.pid : nodes[who.includes('writer') ? writer : 1 - writer]
      const all = nodes.flatMap(treeOf)
      process.kill(victim as number, 'SIGKILL')
      if (who.includes('reader')) {
        // The writer knows nothing of its readers and goes on; the user stops it.
        await sleep(200)
        child.kill('SIGINT')
      }
      const code = await ended
      if (who !== 'the coordinator') assert.notEqual(code, 0, told)
      if (who.includes('writer')) assert.match(told, /node local1 was lost/)
      assert.equal(existsSync(join(place, 'out')), false)
      for (let tries = 0; all.some(isAlive) && tries < 400; tries++) await sleep(50)
      assert.deepEqual(all.filter(isAlive).map(commandOf), [])
      await gone(before)
    })
  }
})

const childrenOf = (pid: number): number[] => {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number)
  } catch {
    return []
  }
}

const treeOf = (pid: number): number[] => [pid, ...childrenOf(pid).flatMap(treeOf)]

const isAlive = (pid: number): boolean => commandOf(pid) !== ''

/** Empty for one that has ended, also when its parent has not asked yet. */
function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
  } catch {
    return ''
  }
}
