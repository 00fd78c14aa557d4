// Random scripts of producers and consumers, one call at a time, against a model of the rules: after every call of
// a producer the model says which consumers must go on, with which result, and which must still wait.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { eventually, pause, step, tools, withWorkflow, type Workflow } from './harness.ts'
import { Theatre, type Puppet } from './puppets.ts'
import { governed, ruleLine, rules, type Rules } from './play-rules.ts'
import type { Reader } from './rules-model.ts'
import { Audience, type Look } from './rules-seen.ts'

const NAMES = ['f0', 'f1', 't0', 't1', 'd/a', 'd/b', 'g0', 'e/a']
const FOLDERS = ['d', 'e'] as const
type Op = [what: number, who: number, a: number, b: number, c: number]
type Pending = {
  said: string
  waits: boolean
  result: (waits: boolean) => string | undefined
  /** Who reads several times gets on while the call is pending: to here. */
  reader: Reader | undefined
  at: number | undefined
}

const checksum = (bytes: number[]): number => {
  let sum = 2166136261
  for (const byte of bytes) sum = Math.imul(sum ^ byte, 16777619) >>> 0
  return sum
}
const shown = (result: number[] | number | undefined): string | undefined =>
  Array.isArray(result)
    ? `${result.length} ${checksum(result)}`
    : result === undefined
      ? undefined
      : String(result)

type Consumer = {
  id: string
  puppet: Puppet
  readers: Map<number, Reader>
  pending: Pending | undefined
  early?: string | undefined
}

class Play {
  readonly log: string[] = []
  readonly #workflow: Workflow
  readonly #model: Audience
  readonly #theatres: Theatre[]
  readonly #producers = new Map<string, { puppet: Puppet; theatre: Theatre }>()
  readonly #consumers: Consumer[]
  #marks = 0
  #forks = 0

  constructor(workflow: Workflow, wanted: Rules, program: string, env: Record<string, string>) {
    this.#workflow = workflow
    this.#model = new Audience(wanted, ['P0', 'P1'])
    this.#theatres = ['S', 'S', 'Q', 'Q'].map(app => new Theatre(workflow, app, program, env))
    for (const [i, theatre] of this.#theatres.slice(0, 2).entries())
      this.#producers.set(`P${i}`, { puppet: theatre.first, theatre })
    this.#consumers = this.#theatres
      .slice(2)
      .map(({ first: puppet }, i) => ({ id: `Q${i}`, puppet, readers: new Map(), pending: undefined }))
  }

  async begin(): Promise<void> {
    await Promise.all(this.#theatres.map(theatre => theatre.first.answer()))
  }

  close(): void {
    for (const theatre of this.#theatres) theatre.close()
  }

  async #same(who: string, line: string, puppet: Puppet, expected: string): Promise<void> {
    this.log.push(`${who}: ${line} -> ${expected}`)
    assert.equal(await puppet.ask(line), expected, this.log.join('\n'))
    await this.#settle()
  }

  async #settle(): Promise<void> {
    for (const consumer of this.#consumers) await this.#settleOne(consumer)
  }

  /** A consumer that the model lets go on must answer; one that must wait has not. */
  async #settleOne(consumer: Consumer): Promise<void> {
    const { pending } = consumer
    if (!pending) return
    const begins = !pending.waits
    const expected = pending.result(pending.waits)
    pending.waits = true
    if (expected === undefined) {
      // the next call must find it waiting, not still on its way
      const { pid } = consumer.puppet
      const at = pending.reader?.at
      const isThere = (): boolean =>
        this.#workflow
          .ps()
          .some(
            line => line.type === 'wait' && line['pid'] === pid && (at === undefined || line['at'] === at),
          )
      if (begins || pending.at !== at) await eventually(() => consumer.early !== undefined || isThere())
      pending.at = at
      assert.equal(consumer.early, undefined, `${this.log.join('\n')}\ndid not wait: ${pending.said}`)
      return
    }
    this.log.push(`${consumer.id} goes on: ${pending.said} -> ${expected}`)
    for (const end = Date.now() + 60_000; consumer.early === undefined && Date.now() < end;) await pause(1)
    assert.equal(consumer.early, expected, this.log.join('\n'))
    consumer.pending = consumer.early = undefined
  }

  async #consume(
    consumer: Consumer,
    line: string,
    result: (waits: boolean) => string | undefined,
    reader?: Reader,
  ): Promise<void> {
    this.log.push(`${consumer.id}: ${line}`)
    consumer.pending = { said: line, waits: false, result, reader, at: undefined }
    void consumer.puppet.ask(line).then(answer => (consumer.early = answer ?? 'ended'))
    await this.#settle()
  }

  async producer([what, who, a, b, c]: Op): Promise<void> {
    const ids = [...this.#producers.keys()]
    const id = ids[who % ids.length]
    if (id === undefined) return
    const { puppet, theatre } = this.#producers.get(id)!
    const model = this.#model
    const { slots } = model.programs.get(id)!
    const open = [...slots.keys()]
    const slot = open.length > 0 ? open[a % open.length]! : undefined
    const names = [...model.names.keys()]
    const name = (a < 9 ? names[a % names.length] : undefined) ?? NAMES[a % NAMES.length]!
    const other = NAMES[b % NAMES.length]!
    const free = [0, 1, 2, 3, 4, 5].find(one => !slots.has(one))
    const mark = ++this.#marks
    const [at, len] = [(b * 37) % 400, 1 + ((c * 29) % 200)]
    const tell = (line: string, expected: number): Promise<void> =>
      this.#same(id, line, puppet, String(expected))
    if (what < 4 && free !== undefined) {
      const how = 'wwacxu'[b % 6]!
      const path = NAMES[c % NAMES.length]!
      return tell(`o ${free} ${path} ${how}`, model.open(id, free, path, how))
    }
    if (what < 16 && slot !== undefined) {
      if (what < 8) return tell(`w ${slot} ${len} ${mark} 1`, model.write(id, slot, len, mark, 1))
      if (what < 9) return tell(`w ${slot} 50 ${mark} 60`, model.write(id, slot, 50, mark, 60))
      if (what < 10) return tell(`p ${slot} ${at} ${len} ${mark}`, model.pwrite(id, slot, at, len, mark))
      if (what < 11) return tell(`s ${slot} ${at} 0`, model.seek(id, slot, at))
      if (what < 12) return tell(`t ${slot} ${at}`, model.ftruncate(id, slot, at))
      if (what < 13 && free !== undefined) return tell(`d ${slot} ${free}`, model.dup(id, slot, free))
      const onto = open[b % open.length]!
      if (what < 14 && slot !== onto && c < 6) return tell(`D ${slot} ${onto}`, model.dupOnto(id, slot, onto))
      if (what < 15 && !slots.get(slot)!.append && c > 3)
        return tell(`y ${slot} ${len} ${mark} ${b % 3}`, model.write(id, slot, len, mark, 1))
      return tell(`c ${slot}`, model.close(id, slot))
    }
    if (what >= 17 && what < 20 && b > 8) return this.#folders(id, a, c)
    if (what === 16) return tell(`T ${name} ${at}`, model.truncate(name, at))
    if (what < 19 && c > 9) return tell(`X ${name} ${other}`, model.exchange(name, other))
    if (what < 19) return tell(`m ${name} ${other}`, model.rename(name, other))
    if (what === 19) return tell(`u ${name}`, model.unlink(name))
    if (what === 20) return tell(`l ${name} ${other}`, model.link(name, other))
    if (what === 21 && theatre.canFork) {
      const child = `C${this.#forks++}`
      this.log.push(`${id}: fork ${child}`)
      this.#producers.set(child, { puppet: await theatre.fork(puppet), theatre })
      model.fork(id, child)
      return
    }
    if (what >= 22 && c < 2) return this.end(id, what === 22 ? [0, 0, 3][b % 3]! : 'killed')
  }

  #folders(id: string, a: number, c: number): Promise<void> {
    const model = this.#model
    const [one, other] = [FOLDERS[a % 2]!, FOLDERS[(a + 1) % 2]!]
    const { puppet } = this.#producers.get(id)!
    const tell = (line: string, expected: number): Promise<void> =>
      this.#same(id, line, puppet, String(expected))
    if (c < 4) return tell(`K ${one}`, model.mkdir(one))
    if (c < 7) return tell(`Z ${one}`, model.rmdir(one))
    return tell(`m ${one} ${other}`, model.renameFolder(one, other))
  }

  async end(id: string, how: number | 'killed'): Promise<void> {
    const { puppet } = this.#producers.get(id)!
    this.log.push(`${id}: ends, ${how}`)
    this.#producers.delete(id)
    if (how !== 'killed') puppet.tell(`e ${how}`)
    await puppet.gone(how === 'killed')
    if (how === 'killed') this.#workflow.board(['reap'])
    this.#model.end(id, how)
    await this.#settle()
  }

  async consumer([what, who, a, b, c]: Op): Promise<void> {
    const consumer = this.#consumers[who % this.#consumers.length]!
    const { readers, pending } = consumer
    if (pending) return
    const model = this.#model
    const open = [...readers.keys()]
    const slot = open.length > 0 ? open[a % open.length]! : undefined
    const reader = slot === undefined ? undefined : readers.get(slot)!
    const name = NAMES[a % NAMES.length]!
    const [at, len] = [(b * 37) % 400, 1 + ((c * 29) % 200)]
    if (what < 8 || !reader) {
      let free = 0
      while (readers.has(free)) free++
      const look: Look = { folder: undefined, waits: false }
      if (what === 6) return this.#consume(consumer, 'L d', () => shown(model.list(look)))
      if (what === 7) return this.#consume(consumer, `S ${name}`, () => shown(model.size(name)))
      return this.#consume(consumer, `o ${free} ${name} r`, () => {
        const got = model.openToRead(name)
        if (typeof got === 'object') readers.set(free, got)
        return typeof got === 'object' ? '0' : shown(got)
      })
    }
    if (what > 12 && what < 16) {
      const size = 1 + (c % 4) * 5
      const all: number[] = []
      let left = 40
      return this.#consume(
        consumer,
        `R ${slot} ${size} 40`,
        waits => {
          for (let still = waits; left > 0; left--, still = false) {
            const got = model.read(reader, size, still)
            if (!Array.isArray(got)) return shown(got)
            all.push(...got)
          }
          return shown(all)
        },
        reader,
      )
    }
    if (what === 12)
      return this.#consume(consumer, `v ${slot} ${len} ${b % 3}`, waits =>
        shown(model.read(reader, len, waits)),
      )
    if (what < 16)
      return this.#consume(consumer, `r ${slot} ${len}`, waits => shown(model.read(reader, len, waits)))
    if (what < 18)
      return this.#consume(consumer, `q ${slot} ${at} ${len}`, waits =>
        shown(model.read(reader, len, waits, at)),
      )
    if (what < 20) return this.#consume(consumer, `s ${slot} ${at} 0`, () => String((reader.at = at)))
    if (what === 20) return this.#consume(consumer, `s ${slot} 0 1`, () => shown(model.seekEnd(reader)))
    if (what === 21) return this.#consume(consumer, `M ${slot}`, () => shown(model.map(reader)))
    readers.delete(slot!)
    return this.#consume(consumer, `c ${slot}`, () => '0')
  }

  /** All producers end: no consumer waits any more, and all read what is there. */
  async finish(): Promise<void> {
    for (const id of this.#producers.keys()) await this.end(id, 0)
    for (const { id, pending } of this.#consumers) assert.equal(pending, undefined, `${id} waits for ever`)
    for (let i = 0; i < NAMES.length; i++)
      for (const what of [0, 6, 7]) await this.consumer([what, i, i, 0, 0])
    for (let i = 0; i < 8; i++) await this.consumer([i < 4 ? 8 : 21, i, i, 0, 6])
    for (const [name, inode] of this.#model.names)
      assert.deepEqual([...readFileSync(this.#workflow.path(name))], inode.bytes, name)
    for (const [name, known] of this.#model.known)
      if (governed(name)) assert.equal(this.#workflow.file(name)?.['state'] ?? 'absent', known.state, name)
  }
}

const ops = fc.array(
  fc.tuple(fc.boolean(), fc.tuple(...[24, 6, 12, 12, 12].map(n => fc.nat({ max: n - 1 })))),
  {
    minLength: 25,
    maxLength: 90,
  },
)
/** Runs random plays with puppets of this program; under the library unless `env` says otherwise. */
export const randomPlays = (runs: number, program = tools.fixture('puppet'), env = {}): Promise<void> =>
  fc.assert(
    fc.asyncProperty(rules, ops, fc.constantFrom('0', '4'), async (wanted, script, gather) => {
      const { f, g, d } = wanted
      const plan = [ruleLine('file', 'f*', f), ruleLine('file', 'g*', g), ruleLine('dir', 'd', d)]
      await withWorkflow([step(0, 'S', '2'), step(1, 'Q', '2'), ...plan], async workflow => {
        mkdirSync(workflow.path('d'))
        const play = new Play(workflow, wanted, program, { ...env, MILLRACE_STREAM_GATHER: gather })
        try {
          await play.begin()
          for (const [consumes, op] of script)
            await (consumes ? play.consumer(op as Op) : play.producer(op as Op))
          await play.finish()
        } finally {
          play.close()
        }
      })
    }),
    { numRuns: runs, interruptAfterTimeLimit: 60_000, includeErrorInReport: true },
  )
