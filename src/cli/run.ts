import { relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MillraceError } from '../core/errors.ts'
import { findPolicy } from '../core/policy.ts'
import { shellQuote } from '../report/text.ts'
import { isPolicyFile, launchWithPolicy, loadPolicyFile } from '../runtime/policy-file.ts'
import { describedNode } from '../runtime/describe-node.ts'
import type { RunOptions } from '../runtime/run-options.ts'
import { divert, writerOf } from '../runtime/streams.ts'
import { loadFailure } from './load-failure.ts'
import { exitCodeOf, explain } from './problem.ts'
import { findProgram } from './program.ts'
import { valueOf } from './spec.ts'
import type { Given } from './spec.ts'
import { checkTargets } from './targets.ts'
import { enableTypescript, isTypescript } from './typescript.ts'

/** `millrace run`: becomes the program. All that can be wrong with the options is said before it starts. */
export async function execute(given: Given): Promise<void> {
  const [file = '', ...operands] = given.operands
  const program = findProgram(file)
  const args = [...operands, ...given.rest]
  const options = optionsOf(given)
  if (options.machine !== undefined) describedNode(options)
  if (options.policy !== undefined) await setPolicy(options.policy)
  options.again = commandLine(program, args, given)
  process.env['MILLRACE_OPTIONS'] = JSON.stringify(options)
  process.argv = [process.execPath, program, ...args]
  if (options.progress === 'json') printAsJson()
  if (isTypescript(program)) await enableTypescript()
  try {
    await import(pathToFileURL(program).href)
  } catch (error) {
    const shown = loadFailure(program, error)
    process.stderr.write(explain(shown))
    // What it has called already must not go on without it, as it would not when started by itself.
    process.exit(exitCodeOf(shown))
  }
}

function optionsOf(given: Given): RunOptions {
  const options: RunOptions = { launched: true }
  const { flags, values } = given
  const progress = flags.get('json') ? 'json' : valueOf(given, 'progress')
  if (flags.get('json') && valueOf(given, 'progress') && valueOf(given, 'progress') !== 'json') {
    throw new MillraceError('MR_OPTION', '--json and --progress say different things', {
      hint: 'Leave out one of them.',
    })
  }
  if (progress !== undefined) options.progress = progress
  for (const name of ['cpus', 'memory', 'policy'] as const) {
    const value = valueOf(given, name)
    if (value !== undefined) options[name] = value
  }
  const ioPolicy = valueOf(given, 'io-policy')
  if (ioPolicy !== undefined) options.ioPolicy = ioPolicy
  const flush = valueOf(given, 'flush')
  if (flush !== undefined) options.flush = flush
  const maxIntermediate = valueOf(given, 'max-intermediate')
  if (maxIntermediate !== undefined) options.maxIntermediate = maxIntermediate
  const machine = valueOf(given, 'machine')
  if (machine !== undefined) options.machine = resolve(machine)
  const tags = values.get('tag')
  if (tags) options.tags = [...tags]
  const color = flags.get('color')
  if (color !== undefined) options.color = color
  const bind = flags.get('bind')
  if (bind !== undefined) options.bind = bind
  const journal = flags.get('journal')
  if (journal !== undefined) options.journal = journal
  checkTargets(given)
  for (const name of ['trace', 'graph', 'picture'] as const) {
    const path = valueOf(given, name)
    if (path === undefined) continue
    if (journal === false) {
      throw new MillraceError(
        'MR_OPTION',
        `--${name} is made from the journal, which --no-journal leaves out`,
        {
          hint: 'Leave out one of them.',
        },
      )
    }
    options[name] = resolve(path)
  }
  return options
}

async function setPolicy(policy: string): Promise<void> {
  if (isPolicyFile(policy)) launchWithPolicy(await loadPolicyFile(policy, enableTypescript))
  else findPolicy(policy)
}

/** Nothing but JSON may be on stdout, also before the first task and in a program that calls none. */
function printAsJson(): void {
  const write = writerOf(process.stdout)
  divert(process.stdout, text => write(`${JSON.stringify({ type: 'printed', text })}\n`))
}

/** As one would type it here. */
function commandLine(program: string, args: readonly string[], { flags, values }: Given): string {
  const path = relative(process.cwd(), program)
  const words = ['millrace', 'run', path.startsWith('..') ? program : path]
  for (const [name, isOn] of flags) words.push(isOn ? `--${name}` : `--no-${name}`)
  for (const [name, given] of values) for (const value of given) words.push(`--${name}`, value)
  if (args.length > 0) words.push('--', ...args)
  return words.map(shellQuote).join(' ')
}
