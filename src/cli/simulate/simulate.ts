import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { plural } from '../../report/format.ts'
import { createJournal } from '../../report/journal/writer.ts'
import { findRun, listRuns, pruneRuns } from '../../report/journal/runs.ts'
import { runPaths } from '../../report/journal/run-paths.ts'
import { Statistics } from '../../report/statistics/statistics.ts'
import { summaryLines } from '../../report/terminal/summary.ts'
import { divert } from '../../runtime/standard-output.ts'
import { packageVersion } from '../../runtime/version.ts'
import { loadInput } from '../../simulate/input/input.ts'
import type { Input } from '../../simulate/input/input.ts'
import { platformOf } from '../../simulate/input/load-platform.ts'
import { recordedPlatform } from '../../simulate/input/recorded-platform.ts'
import type { SimulatedOutcome } from '../../simulate/outcome.ts'
import { simulate } from '../../simulate/simulate.ts'
import type { RunFacts, SimulateOptions } from '../../simulate/simulate.ts'
import { parseMachine } from '../../storage/machine-file.ts'
import { loadFailure } from '../run/load-failure.ts'
import { paintFor, printJson, printLines, remark } from '../output.ts'
import { kindLines, writeFiles } from '../inspect/show.ts'
import { comparisonLines, outcomeLines } from './simulate-report.ts'
import type { Result } from './simulate-report.ts'
import { variantsOf } from './simulate-variants.ts'
import type { DescribedPlatform, Variant } from './simulate-variants.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { EXPORTS, checkTargets } from '../targets.ts'
import { enableTypescript, isTypescript } from '../run/typescript.ts'

/** `millrace simulate` */
export async function execute(given: Given): Promise<void> {
  const [file = '', ...args] = given.operands
  checkTargets(given)
  const described = describedPlatforms(given)
  process.argv = [process.execPath, resolve(file), ...args, ...given.rest]
  // What the program prints is not the result: it goes to stderr.
  const release = divert(process.stdout, text => process.stderr.write(text))
  try {
    const splitTime = given.flags.get('split-time') === true
    const words = { operands: args, rest: given.rest, splitTime }
    const input = await loadInput(await findFile(file), loadProgram, words)
    for (const line of leftOut(input)) remark(line)
    const platforms = described.length > 0 ? described : [platformBehind(input)]
    const variants = await variantsOf(given, platforms, input.recorded)
    const [only] = variants
    if (only?.label != null) refuseFiles(given)
    const print =
      variants.length === 1 && only && only.label === null
        ? await runOnce(given, input, only, factsOf(given, input, platforms[0]?.source ?? '', only, args))
        : await runTable(given, input, variants)
    release()
    await print()
  } finally {
    release()
  }
}

/** A table is of several simulations, of which none is kept. */
function refuseFiles(given: Given): void {
  for (const name of EXPORTS) {
    if (valueOf(given, name) === undefined) continue
    throw new MillraceError('MR_OPTION', `--${name} is for one simulation, not for a table of several`, {
      hint: `Simulate the one by itself: without --compare and --sweep, with --policy and one platform.`,
    })
  }
}

/** Several, separated by commas, are compared. */
function describedPlatforms(given: Given): DescribedPlatform[] {
  const list = valueOf(given, 'platform')
  if (list === undefined) return []
  const files = existsSync(list) ? [list] : list.split(',').filter(Boolean)
  return (files.length === 0 ? [list] : files).map(file => {
    const source = readText(file)
    return { file, platform: platformOf(parseMachine(source, file)), source }
  })
}

/** A run, or a workflow instance that names its machines, can be replayed on the machines that it was recorded on. */
function platformBehind({ recorded, platform }: Input): DescribedPlatform {
  if (recorded) return { file: '', platform: recordedPlatform(recorded), source: '' }
  if (platform) return { file: '', platform, source: '' }
  throw new MillraceError('MR_OPTION', 'simulate needs a platform: --platform FILE', {
    hint: 'It describes the machines to simulate: docs/machine.md and docs/simulation.md.',
  })
}

/** What of a recorded run is not in its replay. */
function leftOut({ recorded }: Input): string[] {
  if (!recorded) return []
  const { outcome, left, lost } = recorded
  const lines: string[] = []
  if (outcome !== 'ok') {
    const ended = outcome === null ? 'has no end' : outcome === 'failed' ? 'failed' : 'was interrupted'
    lines.push(`The recorded run ${ended}: what came of it so far is replayed.`)
  }
  if (left > 0) lines.push(`${plural(left, 'task')} of it did not end well, and ${isOrAre(left)} left out.`)
  if (lost > 0) {
    lines.push(
      `${plural(lost, 'attempt')} failed or came to nothing, and the time that ${lost === 1 ? 'it' : 'they'} took is left out.`,
    )
  }
  return lines
}

const isOrAre = (count: number): string => (count === 1 ? 'is' : 'are')

/** What is to be printed when the program can print no more. */
type Print = () => Promise<void>

/** A file, or the journal of a run that is called so. */
async function findFile(given: string): Promise<string> {
  if (existsSync(given)) return resolve(given)
  try {
    // `last` is the last run that took place: a simulation of it is not what people mean.
    if (given === 'last') {
      const real = (await listRuns(process.cwd())).find(run => !run.simulated)
      if (real) return real.journal
    }
    return (await findRun(process.cwd(), given)).journal
  } catch {
    return given
  }
}

async function loadProgram(url: string): Promise<unknown> {
  try {
    if (isTypescript(url)) await enableTypescript()
    return (await import(url)) as unknown
  } catch (error) {
    throw loadFailure(new URL(url).pathname, error)
  }
}

/**
 * Equal input has an equal name: the run before it, which was the same, is replaced. Its journal has the same bytes, so
 * neither the time nor the folder is in it.
 */
function factsOf(
  given: Given,
  input: Input,
  platform: string,
  { options }: Variant,
  args: string[],
): RunFacts {
  const { policy, platform: _platform, ...rest } = options
  const text = JSON.stringify([input.source, platform, policy?.name, rest, args])
  return {
    run: `simulated-${createHash('sha256').update(text).digest('hex').slice(0, 8)}`,
    version: packageVersion(),
    wallTime: '1970-01-01T00:00:00.000Z',
    // `last` is another one tomorrow.
    program: input.recorded?.facts.run ?? given.operands[0] ?? '',
    args,
    cwd: '',
  }
}

async function runOnce(given: Given, input: Input, { options }: Variant, facts: RunFacts): Promise<Print> {
  const isKept = given.flags.get('journal') !== false
  const isNeeded =
    isKept ||
    given.flags.get('dashboard') === true ||
    EXPORTS.some(name => valueOf(given, name) !== undefined)
  // Traces and pictures are made from a journal: where none is to be kept, from one that is deleted again.
  const base = isKept || !isNeeded ? process.cwd() : mkdtempSync(join(tmpdir(), 'millrace-simulate-'))
  const paths = runPaths(base, facts.run)
  if (isNeeded) {
    rmSync(paths.folder, { recursive: true, force: true })
    mkdirSync(paths.logs, { recursive: true })
  }
  const journal = isNeeded ? createJournal(paths.journal, { flushEvery: Infinity }) : null
  const statistics = new Statistics()
  const observer: SimulateOptions['observer'] = event => {
    statistics.observe(event)
    journal?.observe(event)
  }
  let outcome: SimulatedOutcome
  try {
    outcome = await simulate(input.workload, { ...options, observer }, facts)
  } finally {
    await journal?.close()
  }
  return async () => {
    if (given.flags.get('json')) await printJson([{ run: facts.run, ...outcome }])
    else {
      const paint = paintFor(process.stdout)
      const lines = summaryLines(statistics, paint)
      if (statistics.kinds.size > 0) lines.push('', ...kindLines(statistics, paint))
      printLines([...lines, ...outcomeLines(outcome, paint)])
    }
    if (isKept) remark(`  journal      ${paths.journal}`)
    if (isNeeded) await writeFiles({ journal: paths.journal }, given)
    if (given.flags.get('dashboard'))
      await (await import('../dashboard/dashboard.ts')).serveUntilInterrupted(paths.journal, given)
    if (isKept) await pruneRuns(base)
    else if (isNeeded) rmSync(base, { recursive: true, force: true })
  }
}

async function runTable(given: Given, input: Input, variants: readonly Variant[]): Promise<Print> {
  const results: Result[] = []
  for (const { label, options } of variants) {
    results.push({ variant: label ?? '', outcome: await simulate(input.workload, options) })
  }
  if (given.flags.get('json')) {
    return () => printJson(results.map(({ variant, outcome }) => ({ variant, ...outcome })))
  }
  return () => Promise.resolve(printLines(comparisonLines(results, paintFor(process.stdout))))
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new MillraceError('MR_MACHINE', `the platform ${file} cannot be read`, {
      hint: 'Give the path of a YAML or JSON file by --platform.',
      cause: error,
    })
  }
}
