import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { shellQuote } from '../../general/shell-quote.ts'
import { loadModule } from '../../model/load-module.ts'
import { divert, writerOf } from '../../runtime/standard-output.ts'
import { loadFailure } from './load-failure.ts'
import { exitCodeOf, explain } from '../problem.ts'
import { checkRunOptions, keptOptionsOf, runOptionsOf } from '../run-options.ts'
import { findProgram } from './program.ts'
import type { Given } from '../spec.ts'
import { EXPORTS } from '../targets.ts'
import { enableTypescript, isTypescript } from './typescript.ts'

/** `millrace run`: becomes the program. All mistakes in the options are reported before it starts. */
export async function execute(given: Given): Promise<void> {
  const [file = '', ...operands] = given.operands
  const program = findProgram(file)
  const args = [...operands, ...given.rest]
  const options = { ...runOptionsOf(given, EXPORTS), ...keptOptionsOf(given) }
  await checkRunOptions(options)
  options.again = commandLine(program, args, given)
  process.env['MILLRACE_OPTIONS'] = JSON.stringify(options)
  process.argv = [process.execPath, program, ...args]
  if (options.progress === 'json') printAsJson()
  if (isTypescript(program)) await enableTypescript()
  try {
    await loadModule(pathToFileURL(program).href)
  } catch (error) {
    const shown = loadFailure(program, error)
    process.stderr.write(explain(shown))
    // What it has called already must not go on without it, as it would not when started by itself.
    process.exit(exitCodeOf(shown))
  }
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
  for (const [name, given] of values) {
    for (const value of given)
      words.push(...(name === 'resume' ? [`--resume=${value}`] : [`--${name}`, value]))
  }
  if (args.length > 0) words.push('--', ...args)
  return words.map(shellQuote).join(' ')
}
