import type { Plan } from '../../stream/board/plan.ts'
import type { Snapshot } from '../../stream/board/snapshot.ts'
import type { Instance } from '../../stream/run/instance.ts'
import type { StepCommand } from '../../stream/run/step-commands.ts'
import { StreamError } from '../../stream/stream-error.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import type { Begun, PlacedCommand } from './messages.ts'

const COMMAND = 'started by hand'

/** Where the steps of a workflow will be started by its user, and how often: from `STEP=NODE,NODE` and `STEP=N`. */
export function stepsByHand(plan: Plan, at: readonly string[], times: readonly string[]): StepCommand[] {
  const read = (texts: readonly string[], what: string, form: string): Map<string, string> => {
    const out = new Map<string, string>()
    for (const text of texts) {
      const [, name = '', rest = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
      const isNumber = /^[1-9]\d{0,5}$/.test(rest)
      if (!plan.steps.some(step => step.name === name) || (form === 'STEP=N' && !isNumber)) {
        const fix = `write ${form}; the steps are ${plan.steps.map(step => step.name).join(', ')}`
        throw new StreamError('MR_STREAM_STEPS', `'${text}' does not say ${what}`, fix)
      }
      out.set(name, rest)
    }
    return out
  }
  const nodes = read(at, 'where a step is started', 'STEP=NODE')
  const counts = read(times, 'how often a step is started', 'STEP=N')
  return plan.steps.map(({ name }) => {
    const places = nodes.get(name)?.split(',')
    return {
      step: name,
      run: COMMAND,
      times: Number(counts.get(name) ?? 1),
      ...(places === undefined ? {} : { nodes: places }),
    }
  })
}

/** The name of the board of a node. Nodes on one machine need names of their own. */
export const boardOf = (workflow: string, { by, name }: NodeSpec): string =>
  by === 'local' ? `${workflow}.${name}` : workflow

/** How steps are started on a node that is up. */
export function howToStart(
  spec: NodeSpec,
  workflow: string,
  placed: readonly PlacedCommand[],
  { dir, library }: Begun,
): string {
  if (placed.length === 0) return ''
  const board = boardOf(workflow, spec)
  const named = spec.by === 'local' || workflow !== 'CAPIO' ? ` --workflow ${board}` : ''
  const lines = placed.map(({ step, times }) => {
    const often = times > 1 ? `  (${times} times)` : ''
    return `    millrace stream exec${named} --app ${step} -- program arguments${often}\n`
  })
  const variables = `LD_PRELOAD=${library} CAPIO_DIR=${dir} CAPIO_WORKFLOW_NAME=${board}`
  return `  on ${spec.name}, in ${dir}:\n${lines.join('')}    or with ${variables} CAPIO_APP_NAME=STEP\n`
}

/** Ends of steps that no node has started: boards count them, with those of other nodes. */
export class EndsByHand {
  readonly #begun = new Map<string, number>()

  /** Those that are not among `known` yet. */
  news(snapshots: readonly Snapshot[], known: readonly Instance[], now: number): Instance[] {
    const found: Instance[] = []
    const ok = new Map<string, number>()
    const failed = new Map<string, number>()
    const reasons = new Map<string, string>()
    for (const { steps } of snapshots) {
      for (const { name, running, endedOk, endedFailed, reason } of steps) {
        if (running > 0 && !this.#begun.has(name)) this.#begun.set(name, now)
        ok.set(name, Math.max(ok.get(name) ?? 0, endedOk))
        failed.set(name, Math.max(failed.get(name) ?? 0, endedFailed))
        if (reason !== undefined) reasons.set(name, reason)
      }
    }
    for (const [step, well] of ok) {
      const bad = failed.get(step) ?? 0
      const before = known.filter(one => one.step === step)
      const reason = reasons.get(step)
      // Those of a node that was lost are known before the other boards count them.
      let newBad = bad - before.filter(({ code }) => code !== 0).length
      for (let number = before.length; number < well + bad; number++, newBad--) {
        const isBad = newBad > 0
        found.push({
          step,
          number,
          command: COMMAND,
          started: this.#begun.get(step) ?? now,
          ended: now,
          code: isBad ? 1 : 0,
          tail: isBad && reason !== undefined ? [reason] : [],
        })
      }
    }
    return found
  }
}
