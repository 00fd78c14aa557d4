import { resolve } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import { FileTable } from '../../flow/state/file-table.ts'
import { Makers } from '../../flow/plan/makers.ts'
import { RecordTable } from '../../flow/state/record-table.ts'
import { parameters } from '../../flow/language/params.ts'
import type { Registry, Rule, Target } from '../../flow/language/registry.ts'
import { ruleDefinition } from '../../flow/run/rule-definition.ts'
import { demandsOf } from '../../flow/run/rule-demand.ts'
import { NO_FILE, valueFor, wildcardLabel } from '../../flow/plan/work.ts'
import type { Work } from '../../flow/plan/work.ts'
import { workflowPath } from '../../flow/language/workflow-path.ts'
import type { Slot } from '../../model/capture/call.ts'
import type { Definition } from '../../model/definition.ts'
import type { ProgramClient } from '../program/program-client.ts'
import { programWorkload } from '../program/program.ts'
import type { SimulatedHost } from '../program/program.ts'
import type { Workload } from './workload.ts'

/** A workflow file as a workload: all that its targets need is made, as if nothing were there but its sources. */
export function flowWorkload(
  name: string,
  registry: Registry,
  targets: readonly string[],
  host: SimulatedHost,
): Workload {
  // Functions of targets add rules as they go, and are run again for each platform and policy.
  const restore = registry.remember()
  return programWorkload(
    name,
    () => {
      restore()
      return new SimulatedFlow(registry, host.current as ProgramClient).need(targets)
    },
    host,
  )
}

/** Hands over the work of rules as tasks, in an order in which each comes after what it needs. */
class SimulatedFlow {
  readonly #registry: Registry
  readonly #client: ProgramClient
  readonly #files = new FileTable()
  readonly #makers: Makers
  readonly #submitted = new Set<Work>()
  readonly #targets = new Map<Target, Promise<unknown>>()
  readonly #definitions = new Map<Rule, Definition>()

  constructor(registry: Registry, client: ProgramClient) {
    this.#registry = registry
    this.#client = client
    this.#makers = new Makers(registry, this.#files, new RecordTable())
  }

  async need(names: readonly string[]): Promise<string[]> {
    const waits: Promise<unknown>[] = []
    const { files, bodies } = this.#registry.resolve(names)
    for (const target of bodies) waits.push(this.#runBody(target))
    for (const file of files) waits.push(this.#make(file))
    await Promise.all(waits)
    return [...names]
  }

  #runBody(target: Target): Promise<unknown> {
    let running = this.#targets.get(target)
    if (!running) {
      const need = (wanted: string | readonly string[]): Promise<string[]> => this.need([wanted].flat())
      running = Promise.resolve(target.body?.({ need, params: parameters }))
      this.#targets.set(target, running)
    }
    return running
  }

  #make(file: string): Promise<string> {
    const path = workflowPath(file)
    const work = this.#makers.of(this.#files.id(path))
    if (work) this.#submitAll(work)
    else this.#expectSource(this.#files.id(path), null)
    return this.#client.waitOnFile(path)
  }

  /** Depth first without recursion: chains may be long. */
  #submitAll(root: Work): void {
    const open = new Set<Work>()
    const stack = [{ work: root, next: 0 }]
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const { work } = top
      if (this.#submitted.has(work)) {
        stack.pop()
        continue
      }
      open.add(work)
      const input = work.inputs[top.next++]
      if (input === undefined) {
        stack.pop()
        open.delete(work)
        this.#submitted.add(work)
        this.#submit(work)
      } else if (input !== NO_FILE) {
        const maker = this.#makers.of(input)
        if (!maker) this.#expectSource(input, work)
        else if (open.has(maker)) throw this.#circle(work, maker)
        else if (!this.#submitted.has(maker)) stack.push({ work: maker, next: 0 })
      }
    }
  }

  #submit(work: Work): void {
    const { rule, wildcards } = work
    if (!rule.action) return
    const slots: Slot[] = []
    const add = (path: string, isDirectory: boolean, mode: 'in' | 'out'): void => {
      const datum = this.#client.paths.datum(path, isDirectory)
      if (slots.some(slot => slot.datum === datum)) return
      slots.push({ datum, kind: isDirectory ? 'directory' : 'file', mode, initial: null })
    }
    for (const input of work.inputs) {
      if (input === NO_FILE) continue
      const { path, isDirectory } = this.#madeAs(input)
      add(path, isDirectory, 'in')
    }
    work.outputs.forEach((output, i) => {
      add(this.#absolute(output), rule.outputs[i]?.marks.directory ?? false, 'out')
    })
    const { priority } = rule.options
    const options = {
      ...this.#optionsOf(rule, wildcards),
      ...(priority === undefined ? {} : { priority: valueFor(priority, wildcards) }),
      label: () => wildcardLabel(wildcards),
    }
    this.#client.submit({ ...this.#definition(rule), options }, [wildcards], slots, this.#definition(rule))
  }

  /** A file inside a directory that a task makes is read as part of it. */
  #madeAs(input: number): { path: string; isDirectory: boolean } {
    const path = this.#absolute(input)
    const maker = this.#makers.of(input)
    for (const [i, output] of (maker?.outputs ?? []).entries()) {
      if (!maker?.rule.outputs[i]?.marks.directory) continue
      const folder = this.#absolute(output)
      if (path === folder || path.startsWith(`${folder}/`)) return { path: folder, isDirectory: true }
    }
    return { path, isDirectory: false }
  }

  #optionsOf({ options }: Rule, wildcards: Work['wildcards']): Definition['options'] {
    const { cost, temporary } = options
    return {
      ...demandsOf(options, wildcards),
      ...(temporary === undefined ? {} : { temporary }),
      ...(cost === undefined ? {} : { cost: cost as NonNullable<Definition['options']['cost']> }),
    }
  }

  #definition(rule: Rule): Definition {
    let definition = this.#definitions.get(rule)
    if (!definition) {
      definition = ruleDefinition(rule, { options: {}, timeout: 0, variants: [], command: null })
      this.#definitions.set(rule, definition)
    }
    return definition
  }

  #absolute(file: number): string {
    return resolve(this.#files.path(file))
  }

  /** What a rule says that it reads need not be here. */
  #expectSource(file: number, reader: Work | null): void {
    if (reader?.rule.options.cost?.reads !== undefined || this.#files.exists(file)) return
    const path = this.#files.path(file)
    const site = reader ? ` (rule at ${reader.rule.site})` : ''
    throw new MillraceError('MR_FLOW_MISSING', `${path} does not exist and no rule makes it${site}`, {
      hint: reader
        ? "Make the file, or say how much the rule reads: cost: { reads: '290MB' }."
        : 'Name a target of the workflow, or a file that one of its rules makes.',
    })
  }

  #circle(work: Work, again: Work): MillraceError {
    const name = ({ outputs }: Work): string => this.#files.path(outputs[0] as number)
    return new MillraceError(
      'MR_FLOW_CYCLE',
      `${name(again)} is needed to make ${name(work)}, and the other way round (rule at ${again.rule.site})`,
    )
  }
}
