import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  checkText,
  parseStepOption,
  readStepCommands,
  StreamConfigError,
  streamCheck,
  streamDown,
  streamExec,
  streamPs,
  streamTools,
  streamUp,
} from '../../src/stream/index.ts'
import { configOf, ears, folderOf, toolsOrReason } from './support.ts'

const { tools, skip } = await toolsOrReason()
const stages = {
  make: { out: ['numbers'], rules: [{ name: 'numbers', committed: 'on_close', mode: 'no_update' }] },
  add: { in: ['numbers'], out: ['sum'] },
}
const config = configOf(stages, { permanent: ['sum'] })

describe('millrace stream check', () => {
  test('prints the plan within 100 columns', async () => {
    const long = configOf({
      ['step_' + 'x'.repeat(60)]: { out: ['a/very/long/directory/of/files/'.repeat(4) + '*'] },
      reader: { in: ['*'] },
    })
    const folder = folderOf({ 'Config.json': config, 'Long.json': long })
    const io = ears()
    assert.equal(await streamCheck(join(folder, 'Config.json'), {}, io), 0)
    assert.equal(
      io.said(),
      [
        'workflow test: 2 steps (make, add)',
        '',
        'FILES    WRITTEN BY  READ BY  COMPLETE                  READABLE       KEPT  WHERE',
        'numbers  make        add      on_close                  as it grows    no    -',
        'sum      add         no step  on_termination (default)  when complete  yes   -',
        '',
        'kept: sum',
        '',
        '  make == numbers ==> add',
        '  add -- sum --> (kept)',
        '',
      ].join('\n'),
    )
    assert.equal(io.told(), '')
    assert.equal(await streamCheck(join(folder, 'Long.json'), {}, io), 0)
    for (const line of io.said().split('\n')) assert.ok(line.length <= 100, line)
  })

  test('prints the graph', async () => {
    const io = ears()
    const folder = folderOf({ 'Config.json': config })
    assert.equal(await streamCheck(join(folder, 'Config.json'), { graph: true }, io), 0)
    assert.match(io.said(), /^digraph "test" \{/)
    assert.match(io.said(), /"step make" -> "file numbers"/)
    assert.match(io.said(), /"file numbers" -> "step add" \[label="as it grows"/)
  })

  test('names all mistakes and starts nothing: exit code 2', async () => {
    const io = ears()
    const folder = folderOf({ 'Config.json': '{"name": "w",\n"IO_Graph": [{"nam": "a"}],\n"exclude": 1}' })
    assert.equal(await streamCheck(join(folder, 'Config.json'), {}, io), 2)
    assert.match(
      io.told(),
      /Config\.json:2:15: error: IO_Graph\[0\]\.nam: unknown key 'nam'\n {2}fix: did you mean 'name'\?/,
    )
    assert.match(io.told(), /3 errors; nothing was started/)
    assert.equal(io.said(), '')
  })

  test('says so when there is no such file', async () => {
    const io = ears()
    assert.equal(await streamCheck('/no/such/file.json', {}, io), 2)
    assert.match(io.told(), /^\/no\/such\/file\.json:1:1: error: there is no such file/)
  })

  test('the configuration in docs/streaming.md is good', () => {
    const page = readFileSync(join(fileURLToPath(import.meta.url), '../../../docs/streaming.md'), 'utf8')
    const blocks = [...page.matchAll(/```json\n([^]*?)```/g)].map(match => match[1]!)
    const configs = blocks.filter(text => text.includes('IO_Graph'))
    assert.equal(configs.length, 1)
    for (const text of configs) assert.deepEqual(checkText(text, 'streaming.md').problems, [])
  })

  test('the example is good', async () => {
    const example = join(fileURLToPath(import.meta.url), '../../../examples/stream/sensors')
    const io = ears()
    assert.equal(await streamCheck(join(example, 'Config.json'), {}, io), 0)
    assert.equal(io.told(), '')
    assert.deepEqual(
      readStepCommands(join(example, 'steps.json')).map(command => command.step),
      ['measure', 'summarize'],
    )
  })
})

describe('commands of steps', () => {
  test('as options', () => {
    assert.deepEqual(parseStepOption('a=prog x=1 y'), { step: 'a', run: 'prog x=1 y' })
    for (const bad of ['a', '=x', 'a=', 'a= '])
      assert.throws(() => parseStepOption(bad), /does not say what to run/)
  })

  test('as a file', () => {
    const text =
      '{ "a": "x | y", "b": ["p", "q r"], "c": { "run": "z", "times": 3, "cwd": "/tmp", "env": { "N": 1 } } }'
    const folder = folderOf({ 'steps.json': text })
    assert.deepEqual(readStepCommands(join(folder, 'steps.json')), [
      { step: 'a', run: 'x | y' },
      { step: 'b', run: ['p', 'q r'] },
      { step: 'c', run: 'z', times: 3, cwd: '/tmp', env: { N: '1' } },
    ])
  })

  const wrong: [text: string, message: RegExp][] = [
    ['[]', /must hold an object/],
    ['{"a": 3}', /steps\.json:1:7: error: a: no command/],
    ['{"a": {"times": 2}}', /no command/],
    ['{"a": {"run": "x", "tims": 2}}', /unknown key 'tims'[^]*'times'/],
    ['{"a": {"run": "x", "times": 0}}', /at least 1/],
    ['{"a": ["x", 1]}', /no command/],
    ['{"a": "x",}', /comma/],
  ]
  for (const [text, message] of wrong) {
    test(`a mistake is named: ${text}`, () => {
      const folder = folderOf({ 'steps.json': text })
      assert.throws(
        () => readStepCommands(join(folder, 'steps.json')),
        (error: unknown) => error instanceof StreamConfigError && message.test(error.message),
      )
    })
  }
})

describe('building the library', () => {
  const sources = (script: string): string => `${folderOf({ 'build.sh': script, 'a.c': '' })}/`
  const withEnv = async (values: Record<string, string>, body: () => Promise<unknown>): Promise<void> => {
    const before = Object.keys(values).map(name => [name, process.env[name]] as const)
    Object.assign(process.env, values)
    try {
      await body()
    } finally {
      for (const [name, value] of before)
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
    }
  }

  test('happens once, in the cache of the user', () =>
    withEnv({ XDG_CACHE_HOME: folderOf({}) }, async () => {
      const log = join(folderOf({}), 'log')
      const from = sources(`echo built >> ${log}; : > $1/millrace-board; : > $1/libmillrace.so`)
      const said: string[] = []
      const [one, two] = await Promise.all([
        streamTools(text => said.push(text), from),
        streamTools(() => {}, from),
      ])
      assert.deepEqual(one, two)
      assert.ok(one.board.startsWith(`${process.env['XDG_CACHE_HOME']}/millrace/stream-`))
      assert.equal(readFileSync(log, 'utf8'), 'built\n')
      assert.match(said.join(''), /building the streaming library in/)
      assert.deepEqual(readdirSync(join(process.env['XDG_CACHE_HOME']!, 'millrace')).length, 1)
    }))

  test('without a compiler the way out is named', () =>
    withEnv({ XDG_CACHE_HOME: folderOf({}), CC: 'no-such-cc' }, async () => {
      await assert.rejects(
        streamTools(() => {}, sources('set -e; $CC -c x.c')),
        /no C compiler \('no-such-cc'\)[^]*install one/,
      )
      assert.deepEqual(readdirSync(join(process.env['XDG_CACHE_HOME']!, 'millrace')), [])
    }))

  test('messages of the compiler are shown', () =>
    withEnv({ XDG_CACHE_HOME: folderOf({}) }, async () => {
      await assert.rejects(
        streamTools(() => {}, sources('echo "x.c:1: bad" >&2; exit 1')),
        /could not be built:\n {2}x\.c:1: bad/,
      )
    }))
})

describe('millrace stream up, exec, ps, down', { skip, timeout: 240_000 }, () => {
  const named = (): { workflow: string } => ({ workflow: `up.${process.pid}.${count++}` })
  let count = 0

  test('steps started one by one, in either order', async () => {
    const folder = folderOf({ 'Config.json': config })
    const io = ears()
    const name = named()
    assert.equal(await streamUp(join(folder, 'Config.json'), { ...name, place: folder }, io), 0, io.told())
    const dir = /export CAPIO_DIR='([^']+)'/.exec(io.said())![1]!
    assert.ok(existsSync(dir))
    assert.match(io.told(), /LD_PRELOAD=.*libmillrace\.so CAPIO_APP_NAME=make/)

    const again = ears()
    assert.equal(await streamUp(join(folder, 'Config.json'), { ...name, place: folder }, again), 1)
    assert.match(again.told(), /is up already[^]*stream down/)

    // Separate processes: exec hands its own input and output to the step.
    const reader = streamExec(
      {
        ...name,
        app: 'add',
        command: ['sh', '-c', "awk '{ s += $1 } END { print s }' numbers > sum"],
        cwd: dir,
      },
      io,
    )
    const seen = ears()
    while (!/add .* waits for/.test(seen.said())) assert.equal(await streamPs(name, seen), 0)
    assert.match(seen.said(), /step add: running/)
    assert.match(seen.said(), /step make: not started/)

    // The way of CAPIO: nothing but environment variables.
    const env = {
      ...process.env,
      LD_PRELOAD: tools!.library,
      CAPIO_DIR: dir,
      CAPIO_WORKFLOW_NAME: name.workflow,
      CAPIO_APP_NAME: 'make',
    }
    const made = spawnSync('sh', ['-c', 'seq 1 10 > numbers'], { cwd: dir, env, encoding: 'utf8' })
    assert.equal(made.status, 0, made.stderr)
    assert.equal(await reader, 0)

    const end = ears()
    assert.equal(await streamDown(name, end), 0, end.told())
    assert.equal(readFileSync(join(folder, 'sum'), 'utf8'), '55\n')
    assert.match(end.told(), /kept .*sum\n1 temporary file removed/)
    assert.equal(existsSync(dir), false)
    const gone = ears()
    assert.equal(await streamDown(name, gone), 1)
    assert.match(gone.told(), /no workflow 'up\..*' is up/)
  })

  test('a step whose number of starts is told ends with the last of them', async () => {
    const stages = { make: { out: ['parts'] }, add: { in: ['parts'] } }
    const folder = folderOf({ 'Config.json': configOf(stages) })
    const dir = join(folder, 'managed')
    const [io, name] = [ears(), named()]
    const up = (times: string[]): Promise<number> =>
      streamUp(join(folder, 'Config.json'), { ...name, dir, grace: 60, times }, io)
    assert.equal(await up(['mke=2']), 2)
    assert.match(io.told(), /'mke=2' does not say how often[^]*the steps are make, add/)
    assert.equal(await up(['make=2']), 0, io.told())
    const make = (text: string): Promise<number> =>
      streamExec({ ...name, app: 'make', command: ['sh', '-c', `echo ${text} >> parts`], cwd: dir }, io)
    assert.equal(await make('one'), 0)
    const reader = streamExec({ ...name, app: 'add', command: ['sh', '-c', 'cat parts > got'], cwd: dir }, io)
    const seen = ears()
    while (!/add waits for the end/.test(seen.said())) assert.equal(await streamPs(name, seen), 0)
    assert.equal(await make('two'), 0)
    assert.equal(await reader, 0)
    assert.equal(readFileSync(join(dir, 'got'), 'utf8'), 'one\ntwo\n')
    assert.equal(await streamDown(name, io), 0, io.told())
  })

  test('down refuses while steps run, unless forced; the waiting step then ends', async () => {
    const folder = folderOf({ 'Config.json': config })
    const dir = join(folder, 'managed')
    mkdirSync(dir)
    writeFileSync(join(dir, 'mine'), 'x')
    const io = ears()
    const name = named()
    assert.equal(await streamUp(join(folder, 'Config.json'), { ...name, dir }, io), 0, io.told())
    const env = {
      ...process.env,
      LD_PRELOAD: tools!.library,
      CAPIO_DIR: dir,
      CAPIO_WORKFLOW_NAME: name.workflow,
      CAPIO_APP_NAME: 'add',
    }
    const child = spawn('cat', ['numbers'], { cwd: dir, env, stdio: 'ignore' })
    const ended = new Promise<number | null>(done => child.on('close', done))
    const seen = ears()
    while (!/waits for/.test(seen.said())) await streamPs(name, seen)
    assert.equal(await streamDown(name, io), 1)
    assert.match(io.told(), /still running: add/)
    assert.equal(await streamDown({ ...name, force: true }, io), 0)
    assert.notEqual(await ended, 0)
    assert.deepEqual(readdirSync(dir), ['mine'])
  })

  test('exec names what is wrong', async () => {
    const folder = folderOf({ 'Config.json': config })
    const name = named()
    const io = ears()
    assert.equal(await streamExec({ ...name, app: 'make', command: ['true'] }, io), 1)
    assert.match(io.told(), /no workflow .* is up/)
    await streamUp(join(folder, 'Config.json'), { ...name, place: folder }, io)
    assert.equal(await streamExec({ ...name, app: 'mak', command: ['true'] }, io), 2)
    assert.match(io.told(), /has no step 'mak'[^]*make, add/)
    assert.equal(await streamExec({ ...name, app: 'make', command: [] }, io), 2)
    assert.equal(await streamExec({ ...name, app: 'make', command: ['sh', '-c', 'exit 9'] }, io), 9)
    assert.equal(await streamDown({ ...name, force: true }, io), 0)
  })
})
