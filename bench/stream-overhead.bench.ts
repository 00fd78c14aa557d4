import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Board, checkText, planLines, streamTools } from '../src/stream/index.ts'
import { bench, type Arm, type Case } from './harness.ts'
import { cleanEnvironment } from './run-program.ts'
import { buildProgram } from './stream/workflow.ts'

const fixture = (name: string): string =>
  buildProgram(fileURLToPath(new URL(`../test/preload/fixtures/${name}.c`, import.meta.url)))

const tools = await streamTools()
const [inside, outside] = [mkdtempSync('/dev/shm/millrace-bench-'), mkdtempSync('/dev/shm/millrace-bench-')]
const board = new Board(tools, `bench.${process.pid}`)
const rule = { name: 'time-calls.dat', committed: 'on_close', mode: 'update' }
const graph = [
  { name: 'producer', output_stream: ['time-calls.dat'], streaming: [rule] },
  { name: 'consumer', input_stream: ['time-calls.dat'] },
]
const { plan } = checkText(JSON.stringify({ name: 'bench', IO_Graph: graph }), 'bench.json')
await board.create(planLines(plan!, { dir: inside, workflow: board.workflow }), process.pid)

const preloaded = (app: string): Record<string, string> => ({
  LD_PRELOAD: tools.library,
  CAPIO_DIR: inside,
  CAPIO_WORKFLOW_NAME: board.workflow,
  CAPIO_APP_NAME: app,
})

function output(program: string, args: string[], env: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: { ...cleanEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', (part: Buffer) => (text += String(part)))
    child.on('error', reject)
    child.on('close', code =>
      code === 0 ? resolve(text) : reject(new Error(`${program} ended with ${code}`)),
    )
  })
}

async function timeOf(call: string, folder: string, env: Record<string, string>): Promise<number> {
  // The file is made and closed by its producer, so that the consumer sees a committed one.
  if (folder === inside) await output('sh', ['-c', `echo > ${inside}/time-calls.dat`], preloaded('producer'))
  return Number((await output(fixture('time-calls'), [folder, '2000', call], env)).split(' ')[1])
}

const [PLAIN, OUTSIDE, INSIDE] = [
  'plain',
  'millrace, outside the directory',
  'millrace, committed file inside',
]

function callCase(call: string): Case {
  const arm = (system: string, folder: string, env: Record<string, string>): Arm => ({
    system,
    run: () => timeOf(call, folder, env),
  })
  return {
    name: call,
    about: `one ${call}, of a small file in memory`,
    unit: 'ns',
    better: 'lower',
    take: 'best',
    // The host has fast and slow moments of a second or so: each arm is to meet a fast one.
    rounds: 40,
    arms: [
      arm(OUTSIDE, outside, preloaded('consumer')),
      arm(INSIDE, inside, preloaded('consumer')),
      arm(PLAIN, outside, {}),
    ],
    goals: [
      { of: OUTSIDE, against: PLAIN, atMost: 1.1 },
      { of: INSIDE, against: PLAIN, atMost: 1.15 },
    ],
  }
}

const startTime = async (env: Record<string, string>): Promise<number> => {
  const { LD_PRELOAD: library, ...rest } = env
  const more = library === undefined ? {} : { TIME_START_PRELOAD: library }
  return Number(await output(fixture('time-start'), ['60'], { ...rest, ...more }))
}

const startCase: Case = {
  name: 'start',
  about: 'the start of a process, more than without the library',
  unit: 'us',
  better: 'lower',
  take: 'median',
  rounds: 9,
  arms: [
    {
      system: 'millrace, in a workflow',
      run: async () => (await startTime(preloaded('consumer'))) - (await startTime({})),
    },
    {
      system: 'millrace, loaded without a workflow',
      run: async () => (await startTime({ LD_PRELOAD: tools.library })) - (await startTime({})),
    },
  ],
  goals: [{ of: 'millrace, in a workflow', upTo: 500, unit: 'us' }],
}

try {
  const data = ['read', 'write', 'pread', 'pwrite', 'lseek', 'fstat', 'open+close']
  const names = ['stat', 'access', 'statx', 'readlink', 'list', 'mkdir+rmdir', 'create+unlink', 'rename']
  const calls = [...data, ...names]
  await bench('stream-overhead', [...calls.map(callCase), startCase])
} finally {
  await board.destroy(true)
  for (const folder of [inside, outside]) rmSync(folder, { recursive: true, force: true })
}
