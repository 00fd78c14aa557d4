import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import { findPolicy } from '../core/policy.ts'
import { checkParameters, giveParameters, unaskedParameters } from '../flow/params.ts'
import { lookAhead } from '../flow/looks-ahead.ts'
import { flowState } from '../flow/registry.ts'
import { writeGraph } from '../flow/graph.ts'
import { workflowPath } from '../flow/workflow-path.ts'
import { buildLookTool } from '../native/look-tool.ts'
import { plural } from '../report/format.ts'
import { shellQuote } from '../report/text.ts'
import { makeFoldersNow } from '../storage/folders.ts'
import { FlowRun } from '../runtime/flow-run.ts'
import { isPolicyFile, launchWithPolicy, loadPolicyFile } from '../runtime/policy-file.ts'
import type { RunOptions } from '../runtime/run-options.ts'
import { clean } from './flow-clean.ts'
import { defaultTargets, findFlow, loadFlow } from './flow-file.ts'
import { explainLines, planLines } from './flow-plan.ts'
import { printLines, remark } from './output.ts'
import { valueOf } from './spec.ts'
import type { Given } from './spec.ts'
import { checkTargets } from './targets.ts'
import { enableTypescript } from './typescript.ts'

/** Names that are told one by one. */
const FEW = 20

/** `millrace make`: brings targets up to date. */
export async function execute(given: Given): Promise<void> {
  const { flags } = given
  const path = findFlow(valueOf(given, 'file'))
  checkTargets(given)
  if (flags.get('watch')) return (await import('./flow-watch.ts')).watch(path)
  const cache = valueOf(given, 'cache')
  const cacheFolder = cache === undefined ? null : usableCache(resolve(cache))
  giveParameters(given.rest)
  const options = optionsOf(given)
  if (options.policy !== undefined) await setPolicy(options.policy)
  const isOver = tellEarlyEnd(basename(path))
  try {
    await make(given, path, options, cacheFolder)
  } finally {
    isOver()
  }
}

async function make(
  given: Given,
  path: string,
  options: RunOptions,
  cacheFolder: string | null,
): Promise<void> {
  const { flags } = given
  const root = dirname(path)
  const ahead = lookAhead(resolve(root, '.millrace'))
  const registry = await loadFlow(path, !flags.get('dry-run')).finally(tellListed)
  if (given.rest.length > 0) checkParameters(readFileSync(path, 'utf8'))
  const asked = given.operands.length > 0
  const targets = asked ? given.operands.map(nameOf) : defaultTargets(registry, path)
  if (flags.get('clean')) return clean(registry, asked ? targets : null, flags.get('force') === true)
  process.env['MILLRACE_OPTIONS'] = JSON.stringify(options)
  process.argv = [process.execPath, path, ...targets]
  const isDry = flags.get('dry-run') === true
  const explain = flags.get('explain') === true
  const run = new FlowRun(
    registry,
    {
      root,
      mode: isDry ? 'dry' : flags.get('touch') ? 'touch' : 'run',
      force: flags.get('force') === true,
      keepGoing: flags.get('keep-going') === true,
      lean: valueOf(given, 'graph') === undefined,
      cache: cacheFolder,
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
  if (ahead?.isSlow) await buildLookTool()
}

/** A workflow that ends the process itself must not be taken for one that is made. Returns what ends the watch. */
function tellEarlyEnd(name: string): () => void {
  let isDry = false
  // Nothing is left to wait for: that is told by others.
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

/** Whoever watches wants to know where files were looked for, also when the run fails. */
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
    for (const work of left.slice(0, FEW)) {
      remark(`  ${run.state.files.path(work.outputs[0] as number)} does not exist`)
    }
    if (left.length > FEW) remark(`  and ${left.length - FEW} more`)
    return
  }
  if (run.planned.length === 0 && progress !== 'none' && progress !== 'json') {
    remark('millrace: nothing to do, all is up to date')
  }
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

function optionsOf(given: Given): RunOptions {
  const options: RunOptions = { launched: true }
  const jobs = valueOf(given, 'jobs')
  if (jobs !== undefined) options.cpus = jobs
  const policy = valueOf(given, 'policy')
  if (policy !== undefined) options.policy = isPolicyFile(policy) ? resolve(policy) : policy
  const progress = valueOf(given, 'progress')
  if (progress !== undefined) options.progress = progress
  const trace = valueOf(given, 'trace')
  if (trace !== undefined) options.trace = resolve(trace)
  options.again = commandAgain(given)
  const modes = ['dry-run', 'touch', 'clean'].filter(name => given.flags.get(name))
  if (modes.length > 1) {
    throw new MillraceError('MR_OPTION', `--${modes.join(' and --')} exclude each other`, {
      hint: 'Leave out one of them.',
    })
  }
  return options
}

/** The cache keeps quiet about what it cannot keep, so a folder that can never be one is told before. */
function usableCache(folder: string): string {
  try {
    makeFoldersNow(folder)
    return folder
  } catch (cause) {
    const reason = existsSync(folder) ? 'it is not a folder' : (cause as Error).message
    throw new MillraceError('MR_OPTION', `--cache ${folder} cannot be used: ${reason}`, {
      hint: 'Name a folder that is there or can be made.',
      cause,
    })
  }
}

/** What decides over the result is repeated; how it is shown, and what was forced, is not. */
function commandAgain(given: Given): string {
  const file = valueOf(given, 'file')
  return [
    'millrace',
    'make',
    ...given.operands,
    ...(file === undefined ? [] : ['--file', file]),
    ...(given.rest.length > 0 ? ['--', ...given.rest] : []),
  ]
    .map(shellQuote)
    .join(' ')
}

async function setPolicy(policy: string): Promise<void> {
  if (isPolicyFile(policy)) launchWithPolicy(await loadPolicyFile(policy, enableTypescript))
  else findPolicy(policy)
}
