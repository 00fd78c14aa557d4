import type { Plan } from '../../stream/board/plan.ts'
import { counted } from '../../stream/board/table.ts'
import { loadPlan } from '../../stream/language/load.ts'
import { problemText } from '../../stream/language/problems.ts'
import type { Instance } from '../../stream/run/instance.ts'
import { byteText, durationText, Progress, progressLines } from '../../stream/run/progress.ts'
import { doubtText, failureText, summaryText, unseenText } from '../../stream/run/run-report.ts'
import { Screen } from '../../stream/run/screen.ts'
import type { StreamIo } from '../../stream/run/screen.ts'
import { watchdog } from '../../stream/run/watchdog.ts'
import type { NodeSpec } from '../launch/node-spec.ts'
import { EndsByHand, howToStart, stepsByHand } from './by-hand.ts'
import { StreamSites } from './stream-sites.ts'
import type { SitesOptions } from './stream-sites.ts'

/** Seconds after which progress tells of a wait, and of how many. */
const LONG_WAIT = 5
const MOST_WAITS = 5

/**
 * A streaming workflow on several nodes whose steps its user starts: `at` says where, as `STEP=NODE`, and `times` how often, as
 * `STEP=N`.
 */
export function streamUpOnNodes(
  file: string,
  at: readonly string[],
  times: readonly string[],
  specs: readonly NodeSpec[],
  options: SitesOptions & { readonly byHand: string },
  io: StreamIo,
  signal?: AbortSignal,
): Promise<number> {
  return watchdog(io, async () => {
    const { plan, warnings } = loadPlan(file)
    for (const warning of warnings) io.err(`${problemText(warning)}\n`)
    const commands = stepsByHand(plan, at, times)
    if (signal?.aborted === true) return 130
    const up = new UpOnNodes(plan, new Screen(io), options)
    const sites = new StreamSites(plan, file, specs, options, {
      note: text => up.print(`${text}\n`),
      looked: () => up.look(),
      started: (node, begun) => up.tellHowToStart(node, begun),
      lost: (node, reason) => up.lost(node, reason),
    })
    up.sites = sites
    try {
      await sites.reach(commands)
      return await up.all(signal)
    } finally {
      sites.close()
      up.clear()
    }
  })
}

class UpOnNodes {
  sites!: StreamSites
  readonly #plan: Plan
  readonly #screen: Screen
  readonly #options: SitesOptions & { readonly byHand: string }
  readonly #progress: Progress
  readonly #byHand = new EndsByHand()
  readonly #instances: Instance[] = []
  readonly #begun = Date.now()
  #expected = 0
  #spoke = Date.now()
  #isCut = false
  /** Steps wait for each other: they get an error when the boards are taken away. */
  #isDeadlocked = false
  #wake: () => void = () => {}

  constructor(plan: Plan, screen: Screen, options: SitesOptions & { readonly byHand: string }) {
    this.#plan = plan
    this.#screen = screen
    this.#options = options
    this.#progress = new Progress(plan)
  }

  async all(signal?: AbortSignal): Promise<number> {
    const { sites } = this
    for (const placed of sites.placed) for (const { times } of placed) this.#expected += times
    const nodes = counted(sites.nodes.length, 'node')
    this.print(
      `${this.#plan.name} comes up on ${nodes}; start each step on its node, in any order and at once:\n`,
    )
    const stop = (): void => {
      this.#isCut = true
      this.print(`stopping ${counted(this.#running, 'step')} …\n`)
      sites.stop()
      this.#wake()
    }
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop)
    try {
      sites.start(this.#options.byHand)
      while (!this.#isCut && !this.#isDeadlocked && this.#running > 0)
        await new Promise<void>(resolve => (this.#wake = resolve))
      return await this.#close()
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  print(text: string): void {
    this.#screen.print(text)
  }

  clear(): void {
    this.#screen.clear()
  }

  tellHowToStart(index: number, begun: Parameters<typeof howToStart>[3]): void {
    const { specs, placed } = this.sites
    const spec = specs[index] as NodeSpec
    this.print(howToStart(spec, this.#options.byHand, placed[index] ?? [], begun))
  }

  look(): void {
    const snapshots = this.sites.nodes.flatMap(({ snapshot }) => snapshot ?? [])
    for (const instance of this.#byHand.news(snapshots, this.#instances, Date.now())) this.#ended(instance)
    this.#show()
    if (this.#isCut || this.#isDeadlocked) return
    const circle = this.sites.deadlock((step, number) =>
      this.#instances.some(one => one.step === step && one.number === number),
    )
    if (circle === null) return
    this.#isDeadlocked = true
    this.print(`error: these steps wait for each other and are stopped: ${circle}\n`)
    this.#wake()
  }

  lost(index: number, reason: string): void {
    const { name } = this.sites.nodes[index] ?? { name: '?' }
    this.print(`node ${name} was lost: ${reason}\n`)
    const now = Date.now()
    for (const { step, run, first, times } of this.sites.placed[index] ?? []) {
      const command = typeof run === 'string' ? run : run.join(' ')
      for (let number = first; number < first + times; number++) {
        if (this.#instances.some(one => one.step === step && one.number === number)) continue
        const tail = [`node ${name} was lost`]
        this.#ended({ step, number, command, started: this.#begun, ended: now, code: 137, tail })
      }
    }
    this.#wake()
  }

  get #running(): number {
    return this.#expected - this.#instances.length
  }

  #ended(instance: Instance): void {
    this.#instances.push(instance)
    const { step, number, started, code } = instance
    const index = this.sites.placed.findIndex(placed =>
      placed.some(one => one.step === step && number >= one.first && number < one.first + one.times),
    )
    const node = this.sites.nodes[index]?.name ?? '?'
    const time = durationText((instance.ended ?? 0) - started)
    const state = code === 0 ? 'ended' : 'FAILED'
    this.print(
      `[${this.#instances.length}/${this.#expected}] ${state} ${step} on ${node} (exit code ${code}) ${time}\n`,
    )
    this.#wake()
  }

  #show(): void {
    const isDue = Date.now() - this.#spoke >= (this.#options.heartbeat ?? 30_000)
    if (!this.#screen.live && !isDue) return
    const lines = this.#block()
    if (this.#screen.live) return this.#screen.paint(lines)
    this.#spoke = Date.now()
    this.print(`${lines.join('\n')}\n`)
  }

  #block(): string[] {
    const { sites } = this
    const { snapshot, rates } = sites
    const states = this.#progress.look(snapshot, Date.now())
    const bytes = states.reduce((sum, state) => sum + state.bytes, 0)
    const elapsed = durationText(Date.now() - this.#begun)
    const done = `[${this.#instances.length}/${this.#expected}] steps ended`
    const nodes = counted(sites.nodes.length, 'node')
    const waits = snapshot.waits.flatMap(({ sentence, at, for: what, seconds }) =>
      (seconds ?? 0) < LONG_WAIT ? [] : [`${sentence}${what === 'data' ? `, from byte ${at}` : ''}`],
    )
    const more = [...waits.slice(0, MOST_WAITS), ...(rates === undefined ? [] : [rates])]
    return [
      `${this.#plan.name}  ${elapsed}  ${nodes}  ${done}  ${byteText(bytes)} written`,
      ...progressLines(states, this.#screen.width, this.#screen.height - 2 - more.length),
      ...more,
    ]
  }

  async #close(): Promise<number> {
    const failed = this.#instances.filter(({ code }) => code !== 0)
    const isOk = failed.length === 0 && !this.#isCut && !this.#isDeadlocked
    const { last, kept, removed, workspace, isWhole, links } = await this.sites.finish(isOk)
    this.clear()
    if (failed.length > 0 && !this.#isCut) this.print(failureText(this.#plan, this.#instances, last))
    const doubt = doubtText(last)
    this.print(doubt + unseenText(last))
    this.print(
      summaryText({
        plan: this.#plan,
        instances: this.#instances,
        states: new Progress(this.#plan).look(last, Date.now()),
        kept,
        removed,
        elapsed: Date.now() - this.#begun,
        cut: this.#isCut,
        doubtful: doubt !== '',
        workspace,
      }),
    )
    if (links !== undefined) this.print(`  ${links}\n`)
    if (this.#isCut) return 130
    return isOk && isWhole && kept.stuck.length === 0 && doubt === '' ? 0 : 1
  }
}
