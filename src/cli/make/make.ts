import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { checkParameters, giveParameters, unaskedParameters } from '../../flow/language/params.ts'
import { prefetchStats, prepareLookAhead } from '../../flow/state/stat-prefetch.ts'
import { flowState } from '../../flow/language/registry.ts'
import type { Registry } from '../../flow/language/registry.ts'
import type { Force } from '../../flow/plan/planner.ts'
import { nearest } from '../../general/nearest.ts'
import { writeGraph } from '../../flow/plan/graph.ts'
import { workflowPath } from '../../flow/language/workflow-path.ts'
import { plural } from '../../report/format.ts'
import { shellQuote } from '../../general/shell-quote.ts'
import { makeFoldersNow } from '../../storage/folders.ts'
import type { PartitionWay } from '../../node/processes/gpmetis.ts'
import { FlowRun } from '../../runtime/workflow/run.ts'
import type { RunOptions } from '../../runtime/run-options.ts'
import { clean } from './clean.ts'
import { defaultTargets, findFlow, loadFlow } from './file.ts'
import { listLines } from './list.ts'
import { explainLines, planLines } from './plan.ts'
import { printLines, remark } from '../output.ts'
import { checkRunOptions, runOptionsOf } from '../run-options.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { checkTargets } from '../targets.ts'

/** Maximum number of names listed. */
const MOST_NAMES = 20

/** `millrace make`: brings targets up to date. */
export async function execute(given: Given): Promise<void> {
  const { flags } = given
  const path = findFlow(valueOf(given, 'file'))
  checkTargets(given)
  if (flags.get('watch')) return (await import('./watch.ts')).watch(path)
  const cache = valueOf(given, 'cache')
  if (cache !== undefined && !cache.endsWith(':ro')) makeCache(resolve(cache.replace(/:rw$/, '')))
  giveParameters(given.rest)
  // The graph is that of the workflow, and not made from the journal.
  const options = runOptionsOf(given, ['trace'])
  options.again = commandAgain(given)
  checkModes(given)
  await checkRunOptions(options)
  const isOver = tellEarlyEnd(basename(path))
  try {
    await make(given, path, options)
  } finally {
    isOver()
  }
}

async function make(given: Given, path: string, options: RunOptions): Promise<void> {
  const { flags } = given
  const root = dirname(path)
  const own = resolve(root, '.millrace')
  const ahead = prefetchStats(own)
  const registry = await loadFlow(path, !flags.get('dry-run')).finally(tellListed)
  if (given.rest.length > 0) checkParameters(readFileSync(path, 'utf8'))
  const asked = given.operands.length > 0
  const targets = asked ? given.operands.map(nameOf) : defaultTargets(registry, path)
  if (flags.get('list')) return printLines(listLines(registry))
  const isDry = flags.get('dry-run') === true
  if (flags.get('clean')) {
    return clean(registry, { targets: asked ? targets : null, force: flags.get('force') === true, isDry })
  }
  process.env['MILLRACE_OPTIONS'] = JSON.stringify(options)
  process.argv = [process.execPath, path, ...targets]
  const explain = flags.get('explain') === true
  const keep = valueOf(given, 'keep')
  const run = new FlowRun(
    registry,
    {
      root,
      mode: isDry ? 'dry' : flags.get('touch') ? 'touch' : 'run',
      force: forceOf(given, registry),
      keepGoing: flags.get('keep-going') === true,
      lean: valueOf(given, 'graph') === undefined,
      cache: valueOf(given, 'cache') ?? null,
      ...(keep !== undefined && { keep }),
      partition: (valueOf(given, 'partition') ?? null) as PartitionWay | null,
      onPlan: (works, flow) => {
        if (explain && !isDry) for (const line of explainLines(works, flow)) remark(line)
      },
    },
    ahead,
  )
  await run.make(targets).finally(() => {
    if (isWatched()) for (const path of run.openSources()) flowState.listed.add(path)
    tellListed()
  })
  report(run, path, given, options)
  if (!ahead) await prepareLookAhead(own)
}

/** A workflow that ends the process itself must not be taken for one that is made. Returns what ends the watch. */
function tellEarlyEnd(name: string): () => void {
  let isDry = false
  // Nothing is left to wait for: other parts report that.
  const runDry = (): void => void (isDry = true)
  const tell = (code: number): void => {
    if (code !== 0 || isDry) return
    process.exitCode = 1
    remark(`millrace: ${name} called process.exit before all was made`)
    remark('  Leave it out: the process ends by itself when everything is done. [MR_FLOW_EXIT]')
  }
  process.once('beforeExit', runDry).once('exit', tell)
  return () => void process.off('beforeExit', runDry).off('exit', tell)
}

/** --watch needs to know where files were looked for, also when the run fails. */
function tellListed(): void {
  if (isWatched()) process.send?.([...flowState.listed])
}

const isWatched = (): boolean => process.env['MILLRACE_WATCHED'] !== undefined

function report(run: FlowRun, path: string, given: Given, { progress }: RunOptions): void {
  const graph = valueOf(given, 'graph')
  if (graph !== undefined) writeGraph(graph, run.planner.makers, run.state.files)
  // Functions that were not called this time may have asked for it.
  const source = given.rest.length > 0 ? readFileSync(path, 'utf8') : ''
  const unasked = unaskedParameters().filter(name => !source.includes(name))
  if (unasked.length > 0) remark(`millrace: the workflow did not ask for ${unasked.join(', ')}`)
  if (given.flags.get('dry-run')) {
    printLines(planLines(run, given.flags.get('explain') === true))
    return
  }
  if (given.flags.get('touch')) {
    const left = run.planned.filter(work => work.state !== 'done')
    remark(`millrace: ${plural(run.planned.length - left.length, 'task')} taken as up to date`)
    for (const work of left.slice(0, MOST_NAMES)) {
      remark(`  ${run.state.files.path(work.outputs[0] as number)} does not exist`)
    }
    if (left.length > MOST_NAMES) remark(`  and ${left.length - MOST_NAMES} more`)
    return
  }
  if (progress === 'none' || progress === 'json') return
  const { leftAlone } = run.planner
  if (run.planned.length === 0) remark('millrace: nothing to do, all is up to date')
  else if (leftAlone > 0)
    remark(`millrace: ${plural(leftAlone, 'other task')} ${leftAlone === 1 ? 'was' : 'were'} up to date`)
}

function forceOf({ flags, values }: Given, { rules }: Registry): Force {
  const named = values.get('force-rule') ?? []
  const names = rules.map(({ name }) => name)
  for (const name of named) {
    if (names.includes(name)) continue
    const close = nearest(name, names)
    throw new MillraceError(
      'MR_OPTION',
      `the workflow has no rule '${name}'${close ? `; did you mean '${close}'?` : ''}`,
      { hint: 'millrace make --list has the rules.' },
    )
  }
  const what = flags.get('force') ? 'all' : flags.get('force-only') ? 'goals' : 'none'
  return { what, rules: new Set(named) }
}

/** A target, or a file however it is written, also by way of links to folders. */
function nameOf(name: string): string {
  if (flowState.registry.targets.has(name)) return name
  const path = workflowPath(name)
  return path.startsWith('/') ? workflowPath(withoutLinks(path)) : path
}

function withoutLinks(path: string): string {
  const folder = dirname(path)
  if (folder === path) return path
  const real = existsSync(folder) ? realpathSync(folder) : withoutLinks(folder)
  return join(real, basename(path))
}

function checkModes({ flags }: Given): void {
  const modes = ['dry-run', 'touch', 'clean'].filter(name => flags.get(name))
  // A dry run of --clean lists what it would delete.
  if (modes.length < 2 || !modes.includes('touch')) return
  throw new MillraceError('MR_OPTION', `--${modes.join(' and --')} exclude each other`, {
    hint: 'Leave out one of them.',
  })
}

/** The cache keeps quiet about what it cannot keep, so a folder that can never be one is reported first. */
function makeCache(folder: string): void {
  try {
    makeFoldersNow(folder)
  } catch (cause) {
    const reason = existsSync(folder) ? 'it is not a folder' : (cause as Error).message
    throw new MillraceError('MR_OPTION', `--cache ${folder} cannot be used: ${reason}`, {
      hint: 'Name a folder that is there or can be made.',
      cause,
    })
  }
}

/** What decides over the result is repeated; how it is shown is not. */
function commandAgain(given: Given): string {
  const file = valueOf(given, 'file')
  return [
    'millrace',
    'make',
    ...given.operands,
    ...(file === undefined ? [] : ['--file', file]),
    ...['force', 'force-only'].filter(name => given.flags.get(name)).map(name => `--${name}`),
    ...(given.values.get('force-rule') ?? []).flatMap(name => ['--force-rule', name]),
    ...(given.rest.length > 0 ? ['--', ...given.rest] : []),
  ]
    .map(shellQuote)
    .join(' ')
}
