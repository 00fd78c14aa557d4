import { resolve } from 'node:path'
import { MillraceError } from '../core/errors.ts'
import { findPolicy } from '../core/schedule/policy.ts'
import { describedNode } from '../runtime/describe-node.ts'
import { isPolicyFile, launchWithPolicy, loadPolicyFile } from '../runtime/policy-file.ts'
import { parseCheckpoint } from '../runtime/resume/policy.ts'
import type { RunOptions } from '../runtime/run-options.ts'
import { enableTypescript } from './run/typescript.ts'
import { valueOf } from './spec.ts'
import type { Given } from './spec.ts'
import { checkTargets } from './targets.ts'
import type { EXPORTS } from './targets.ts'

/** Options of the command line whose text is an option of the run. `jobs` is what `make` calls its CPUs. */
const TEXTS = {
  cpus: 'cpus',
  jobs: 'cpus',
  memory: 'memory',
  policy: 'policy',
  nodes: 'nodes',
  slurm: 'slurm',
  'io-policy': 'ioPolicy',
  'io-executors': 'ioExecutors',
  flush: 'flush',
  'max-intermediate': 'maxIntermediate',
  progress: 'progress',
  bind: 'bind',
  port: 'dashboardPort',
  otlp: 'otlp',
} as const

const FLAGS = {
  color: 'color',
  journal: 'journal',
  dashboard: 'dashboard',
  control: 'control',
  'step-times': 'stepTimes',
} as const

/** What `run` and `make` were given, as options of the run; `exports` are the files that the run is to write. */
export function runOptionsOf(given: Given, exports: readonly (typeof EXPORTS)[number][]): RunOptions {
  const { flags, values } = given
  const options: RunOptions = { launched: true }
  for (const [name, option] of Object.entries(TEXTS)) {
    const value = valueOf(given, name)
    if (value !== undefined) options[option] = value
  }
  if (flags.get('json')) {
    if ((options.progress ?? 'json') !== 'json')
      throw contradiction('--json and --progress say different things')
    options.progress = 'json'
  }
  const machine = valueOf(given, 'machine')
  if (machine !== undefined) options.machine = resolve(machine)
  const tags = values.get('tag')
  if (tags) options.tags = [...tags]
  for (const [name, option] of Object.entries(FLAGS)) {
    const flag = flags.get(name)
    if (flag !== undefined) options[option] = flag
  }
  checkTargets(given)
  for (const name of exports) {
    const path = valueOf(given, name)
    if (path === undefined) continue
    if (options.journal === false) {
      throw contradiction(`--${name} is made from the journal, which --no-journal leaves out`)
    }
    options[name] = resolve(path)
  }
  if (options.dashboard && options.journal === false)
    throw contradiction('--dashboard reads the journal, which --no-journal leaves out')
  if (options.control && !options.dashboard)
    throw contradiction('--control is for the live page, which --dashboard serves')
  return options
}

/** What `run` was given about results that are kept; `make` has a state of its own. */
export function keptOptionsOf(given: Given): RunOptions {
  const options: RunOptions = {}
  for (const name of ['checkpoint', 'keep', 'cache'] as const) {
    const value = valueOf(given, name)
    if (value !== undefined) options[name] = value
  }
  const resume = valueOf(given, 'resume') ?? given.flags.get('resume')
  if (resume !== undefined) options.resume = resume
  if (given.flags.get('explain')) options.explain = true
  if (options.checkpoint === 'off' && (resume !== undefined || options.cache !== undefined))
    throw contradiction('--checkpoint off keeps no results, and --resume and --cache use them')
  return options
}

/** Checks the files that options name before anything runs. */
export async function checkRunOptions(options: RunOptions): Promise<void> {
  if (options.machine !== undefined) describedNode(options)
  if (options.checkpoint !== undefined) parseCheckpoint(options.checkpoint)
  const { policy } = options
  if (policy === undefined) return
  if (!isPolicyFile(policy)) return void findPolicy(policy)
  launchWithPolicy(await loadPolicyFile(policy, enableTypescript))
  // A workflow may be in another folder than the one that paths are given in.
  options.policy = resolve(policy)
}

const contradiction = (message: string): MillraceError =>
  new MillraceError('MR_OPTION', message, { hint: 'Leave out one of them.' })
