import { resolve } from 'node:path'
import { findNodes } from '../../cluster/launch/find-nodes.ts'
import { StreamNode } from '../../cluster/streams/stream-node.ts'
import { streamPsOnNodes } from '../../cluster/streams/ps-nodes.ts'
import { streamUpOnNodes } from '../../cluster/streams/up-nodes.ts'
import { printable } from '../../report/text.ts'
import { MillraceError } from '../../core/errors.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { parseBytes } from '../../general/units.ts'
import { processStreams } from '../../runtime/standard-output.ts'
import {
  parseStepOption,
  readStepCommands,
  streamCheck,
  streamDown,
  streamExec,
  streamPs,
  streamUp,
} from '../../stream/index.ts'
import type { StreamIo } from '../../stream/index.ts'
import { packageVersion } from '../../runtime/version.ts'
import { checkRunOptions, runOptionsOf } from '../run-options.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { EXPORTS } from '../targets.ts'

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
      if (given.values.has('nodes')) return upOnNodes(config, given, io, signal)
      if (given.values.has('at')) {
        throw new MillraceError(
          'MR_OPTION',
          '--at says on which node a step is started, and there are no nodes',
          {
            hint: 'Name them by --nodes, or leave out --at.',
          },
        )
      }
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
      if (given.values.has('nodes')) return psOnNodes(given, io)
      return streamPs({ ...texts(given, 'workflow'), ...switches(given, 'json') }, io)
    case 'stream exec':
      return exec(given, io, signal)
    case 'stream node':
      return node(signal)
    default:
      return run(config, given, signal)
  }
}

async function run(config: string, given: Given, signal: AbortSignal): Promise<number> {
  const file = valueOf(given, 'steps')
  const options = (given.values.get('step') ?? []).map(parseStepOption)
  const steps = [...(file === undefined ? [] : readStepCommands(file)), ...options]
  const reserve = valueOf(given, 'reserve')
  const nodes = valueOf(given, 'nodes')
  const specs = nodes === undefined ? null : findNodes({ nodes, isLaunched: true })
  const runOptions = runOptionsOf(given, EXPORTS)
  runOptions.again = commandAgain(config, given)
  await checkRunOptions(runOptions)
  const { streamRun, streamRunOnNodes } = await import('../../runtime/streams/stream-run.ts')
  const common = {
    run: runOptions,
    ...texts(given, 'dir'),
    ...numbers(given, 'limit'),
    ...switches(given, 'keep'),
    ...(reserve === undefined ? {} : { reserve: parseBytes(reserve) ?? 0 }),
  }
  if (!specs) {
    return streamRun(config, steps, { ...common, ...texts(given, 'place') }, processStreams, signal)
  }
  const place = resolve(valueOf(given, 'place') ?? process.cwd())
  const more = { place, version: packageVersion() }
  return streamRunOnNodes(config, steps, specs, { ...common, ...more }, processStreams, signal)
}

/** Steps that the user starts, on several nodes. */
function upOnNodes(config: string, given: Given, io: StreamIo, signal: AbortSignal): Promise<number> {
  if (given.values.has('grace')) {
    throw new MillraceError('MR_OPTION', '--grace and --nodes exclude each other', {
      hint: 'On several nodes each step is started as often as --times says, or once.',
    })
  }
  const specs = findNodes({ nodes: valueOf(given, 'nodes') ?? '', isLaunched: true }) ?? []
  const byHand = valueOf(given, 'workflow') ?? process.env['CAPIO_WORKFLOW_NAME'] ?? 'CAPIO'
  const options = {
    ...texts(given, 'dir'),
    ...numbers(given, 'limit'),
    place: resolve(valueOf(given, 'place') ?? process.cwd()),
    version: packageVersion(),
    byHand,
  }
  const { values } = given
  return streamUpOnNodes(
    config,
    values.get('at') ?? [],
    values.get('times') ?? [],
    specs,
    options,
    io,
    signal,
  )
}

function psOnNodes(given: Given, io: StreamIo): Promise<number> {
  const specs = findNodes({ nodes: valueOf(given, 'nodes') ?? '', isLaunched: true }) ?? []
  const workflow = valueOf(given, 'workflow')
  const words = workflow === undefined ? [] : ['--workflow', workflow]
  return streamPsOnNodes(specs, [...words, ...(given.flags.get('json') ? ['--json'] : [])], io)
}

/** The command line that starts the same steps again. */
function commandAgain(config: string, given: Given): string {
  const words = ['millrace', 'stream', 'run', config]
  for (const name of ['steps', 'step', 'dir', 'place', 'limit', 'reserve', 'nodes'])
    for (const value of given.values.get(name) ?? []) words.push(`--${name}`, value)
  if (given.flags.get('keep')) words.push('--keep')
  return words.map(shellQuote).join(' ')
}

/** One node: what a step prints goes to the coordinator, and signals of the terminal are for it. */
function node(signal: AbortSignal): Promise<number> {
  return new Promise(() => {
    // What was said last may still be on its way; the input stays open until the coordinator ends.
    const end = (): void => {
      process.stdout.write('', () => process.exit(0))
      setTimeout(() => process.exit(1), 60_000)
    }
    const one = new StreamNode(packageVersion(), end)
    signal.addEventListener('abort', () => void one.stop())
  })
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

// oxlint-disable-next-line no-control-regex -- control characters are what this finds
const WIPE = /^\u001b\[\d+A\u001b\[J/

function terminal(): StreamIo {
  const { stderr, stdout } = process
  return {
    out: text => void stdout.write(printable(text)),
    err: text => {
      // The screen of a run wipes itself with this, and nothing else does.
      const wipe = WIPE.exec(text)?.[0] ?? ''
      stderr.write(wipe + printable(text.slice(wipe.length)))
    },
    live: stderr.isTTY === true && process.env['TERM'] !== 'dumb' && !process.env['CI'],
    columns: stderr.columns || 80,
    rows: stderr.rows || 24,
  }
}
