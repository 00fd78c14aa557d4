import { MillraceError } from '../../core/errors.ts'
import { IO_POLICIES } from '../../core/io/io-policy.ts'
import { POLICIES, findPolicy } from '../../core/schedule/policy.ts'
import { nearest } from '../../general/nearest.ts'
import type { Policy } from '../../core/schedule/policy.ts'
import type { PartitionWay } from '../../node/processes/gpmetis.ts'
import { isPolicyFile, loadPolicyFile } from '../../runtime/policy-file.ts'
import type { Platform } from '../../simulate/machine/platform.ts'
import type { RecordedRun } from '../../simulate/input/recorded-run.ts'
import type { SimulateOptions } from '../../simulate/simulate.ts'
import { changed, parseSweep } from '../../simulate/variations.ts'
import type { Sweep } from '../../simulate/variations.ts'
import { failuresOf } from './simulate-failures.ts'
import { valueOf } from '../spec.ts'
import type { Given } from '../spec.ts'
import { enableTypescript } from '../run/typescript.ts'

/** One simulation that is asked for. `label` is null when there is only the one. */
export interface Variant {
  label: string | null
  options: SimulateOptions
}

/** The machines to simulate, and the file that they are described in. */
export interface DescribedPlatform {
  file: string
  platform: Platform
  source: string
}

/** All that is to be simulated: each policy to compare, on each platform, with each value of the sweep. */
export async function variantsOf(
  given: Given,
  platforms: readonly DescribedPlatform[],
  recorded?: RecordedRun,
): Promise<Variant[]> {
  const [first] = platforms as [DescribedPlatform]
  const base: SimulateOptions = { platform: first.platform, ...optionsOf(recorded) }
  const policy = valueOf(given, 'policy')
  if (policy !== undefined) base.policy = await policyOf(policy)
  const ioPolicy = valueOf(given, 'io-policy')
  if (ioPolicy !== undefined) base.ioPolicy = ioPolicy
  const flush = valueOf(given, 'flush')
  if (flush !== undefined) base.flush = flush as NonNullable<SimulateOptions['flush']>
  const partition = valueOf(given, 'partition')
  if (partition !== undefined) base.partition = partition as PartitionWay
  const failures = failuresOf(given, first.platform)
  if (failures) base.failures = failures
  base.seed = seedOf(valueOf(given, 'seed') ?? '1')
  const jitter = valueOf(given, 'jitter')
  if (jitter !== undefined) base.jitter = shareOf(jitter)
  const compare = valueOf(given, 'compare')
  const policies = compare === undefined ? [{ label: null, options: base }] : await compared(compare, base)
  const each = policies.flatMap(variant => onEach(variant, platforms))
  const sweep = valueOf(given, 'sweep')
  return sweep === undefined ? each : each.flatMap(variant => swept(variant, parseSweep(sweep)))
}

const onEach = ({ label, options }: Variant, platforms: readonly DescribedPlatform[]): Variant[] =>
  platforms.map(({ file, platform }) => ({
    label: platforms.length === 1 ? label : joined(label, file),
    options: { ...options, platform },
  }))

function swept({ label, options }: Variant, sweep: Sweep): Variant[] {
  return sweep.values.map(value => {
    const { platform, bandwidth } = changed(options.platform, sweep, value)
    return {
      label: joined(label, `${sweep.name}=${value}`),
      options: { ...options, platform, ...(bandwidth === null ? {} : { bandwidth }) },
    }
  })
}

const joined = (label: string | null, text: string): string => (label === null ? text : `${label} ${text}`)

/** A run is replayed with the policies that it had. */
function optionsOf(recorded: RecordedRun | undefined): Partial<SimulateOptions> {
  if (!recorded) return {}
  const { policy: name, io } = recorded.facts
  // A policy of a file's own is not in the journal.
  const policy = POLICIES.find(one => one.name === name)
  return {
    ...(policy ? { policy } : {}),
    ...(io ? { ioPolicy: io.policy, flush: io.flush, prefetch: io.prefetch } : {}),
  }
}

function seedOf(text: string): number {
  const seed = Number(text)
  if (Number.isSafeInteger(seed)) return seed
  throw new MillraceError('MR_UNIT', `--seed is '${text}', which is too large`, {
    hint: `Write a whole number up to ${Number.MAX_SAFE_INTEGER}.`,
  })
}

function shareOf(text: string): number {
  const share = Number(text)
  if (share >= 0 && share < 1) return share
  throw new MillraceError('MR_UNIT', `--jitter is '${text}', which is not a share from 0 to 1`, {
    hint: 'Write for instance --jitter 0.1.',
  })
}

async function policyOf(name: string): Promise<Policy> {
  return isPolicyFile(name) ? loadPolicyFile(name, enableTypescript) : findPolicy(name)
}

function refusePart(part: string): never {
  const known = [...POLICIES.map(({ name }) => name), ...IO_POLICIES, 'flush', 'flush-always', 'partition']
  const close = nearest(part, known)
  throw new MillraceError(
    'MR_POLICY',
    `there is no policy called '${part}'${close ? `; did you mean ${close}?` : ''}`,
    { hint: `--compare takes ${known.join(', ')}, joined by /, or the path of a module with a policy.` },
  )
}

/** `lifo`, `backfill`, `lifo/backfill`, `priority/flush`: names of policies of either kind, with or without flushing. */
function compared(list: string, base: SimulateOptions): Promise<Variant[]> {
  const labels = list.split(',').filter(Boolean)
  if (labels.length === 0) {
    throw new MillraceError('MR_OPTION', `--compare cannot be '${list}': it names no policy`, {
      hint: 'Write for instance --compare fifo,lifo or --compare fcfs,backfill/flush.',
    })
  }
  return Promise.all(
    labels.map(async label => {
      const options = { ...base }
      const parts = label.startsWith('.') || label.startsWith('/') ? [label] : label.split('/')
      for (const part of parts) {
        if (part === 'flush') options.flush = 'idle'
        else if (part === 'flush-always') options.flush = 'always'
        else if (part === 'partition') options.partition ??= 'auto'
        else if (POLICIES.some(({ name }) => name === part) || isPolicyFile(part)) {
          options.policy = await policyOf(part)
        } else if (IO_POLICIES.includes(part)) {
          options.ioPolicy = part
        } else refusePart(part)
      }
      return { label, options }
    }),
  )
}
