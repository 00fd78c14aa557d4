import { MillraceError } from '../core/errors.ts'
import { parseBytes } from '../general/units.ts'
import {
  parseStepOption,
  readStepCommands,
  streamCheck,
  streamDown,
  streamExec,
  streamPs,
  streamRun,
  streamUp,
} from '../stream/index.ts'
import type { StreamIo } from '../stream/index.ts'
import { valueOf } from './spec.ts'
import type { Given } from './spec.ts'

/** `millrace stream …`: hands the words over to the functions of src/stream. */
export async function execute(given: Given, command: string): Promise<void> {
  const stop = new AbortController()
  const onSignal = (): void => stop.abort()
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  process.on('SIGHUP', onSignal)
  try {
    process.exitCode = await carryOut(command, given, terminal(), stop.signal)
  } finally {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
    process.off('SIGHUP', onSignal)
  }
}

function carryOut(command: string, given: Given, io: StreamIo, signal: AbortSignal): Promise<number> {
  const [config = ''] = given.operands
  const { flags } = given
  switch (command) {
    case 'stream check':
      return streamCheck(config, { graph: flags.get('graph') ?? false }, io)
    case 'stream up':
      return streamUp(
        config,
        {
          ...texts(given, 'workflow', 'dir', 'place'),
          ...numbers(given, 'limit', 'grace'),
          times: given.values.get('times') ?? [],
        },
        io,
      )
    case 'stream down':
      return streamDown(
        { ...texts(given, 'workflow'), ...switches(given, 'force', 'keep'), ...numbers(given, 'wait') },
        io,
      )
    case 'stream ps':
      return streamPs({ ...texts(given, 'workflow'), ...switches(given, 'json') }, io)
    case 'stream exec':
      return exec(given, io, signal)
    default:
      return run(config, given, io, signal)
  }
}

function run(config: string, given: Given, io: StreamIo, signal: AbortSignal): Promise<number> {
  const file = valueOf(given, 'steps')
  const options = (given.values.get('step') ?? []).map(parseStepOption)
  const steps = [...(file === undefined ? [] : readStepCommands(file)), ...options]
  const reserve = valueOf(given, 'reserve')
  return streamRun(
    config,
    steps,
    {
      ...texts(given, 'dir', 'place'),
      ...numbers(given, 'limit'),
      ...switches(given, 'keep'),
      ...(reserve === undefined ? {} : { reserve: parseBytes(reserve) ?? 0 }),
    },
    io,
    signal,
  )
}

function exec(given: Given, io: StreamIo, signal: AbortSignal): Promise<number> {
  const app = valueOf(given, 'app') ?? process.env['CAPIO_APP_NAME']
  const command = [...given.operands, ...given.rest]
  if (app === undefined) {
    throw new MillraceError('MR_OPTION', 'stream exec needs the name of the step', {
      hint: 'Give it by --app NAME, or in CAPIO_APP_NAME.',
    })
  }
  return streamExec({ app, command, ...texts(given, 'workflow') }, io, signal)
}

type Chosen<N extends string, T> = { [K in N]?: T }

/** Options that were given; those that were not must be absent, not undefined. */
function chosen<N extends string, T>(names: readonly N[], read: (name: N) => T | undefined): Chosen<N, T> {
  const found: Chosen<N, T> = {}
  for (const name of names) {
    const value = read(name)
    if (value !== undefined) found[name] = value
  }
  return found
}

const texts = <N extends string>(given: Given, ...names: N[]): Chosen<N, string> =>
  chosen(names, name => valueOf(given, name))

const numbers = <N extends string>(given: Given, ...names: N[]): Chosen<N, number> =>
  chosen(names, name => {
    const value = valueOf(given, name)
    return value === undefined ? undefined : Number(value)
  })

const switches = <N extends string>(given: Given, ...names: N[]): Chosen<N, boolean> =>
  chosen(names, name => given.flags.get(name))

function terminal(): StreamIo {
  const { stderr, stdout } = process
  return {
    out: text => void stdout.write(text),
    err: text => void stderr.write(text),
    live: stderr.isTTY === true && process.env['TERM'] !== 'dumb' && !process.env['CI'],
    columns: stderr.columns || 80,
    rows: stderr.rows || 24,
  }
}
