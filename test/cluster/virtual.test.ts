import assert from 'node:assert/strict'
import test from 'node:test'
import type { Version } from '../../src/core/data/datum.ts'
import { Datum } from '../../src/core/data/datum.ts'
import { demandOf } from '../../src/core/tasks/demand.ts'
import { kindOf } from '../core/rig.ts'
import { Random } from '../core/random.ts'
import { VirtualCluster } from './virtual-cluster.ts'
import type { Job, Weather } from './virtual-cluster.ts'

/** MILLRACE_RUNS=10 makes the hunt ten times longer. */
const RUNS = 4000 * Number(process.env['MILLRACE_RUNS'] ?? 1)
const LIMIT = 3_600_000

const hash = (text: string): string => {
  let h = 0x811c9dc5
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0
  return h.toString(36)
}

type Span = [number, number]

/** `fatal`: so many faults that a node does not outlive; beside them, such as it has to. */
function weatherOf(random: Random, nodes: number, fatal: number): Weather {
  const cuts = new Map<number, Span[]>()
  const stops = new Map<number, Span[]>()
  const kills = new Map<number, number>()
  const add = (to: Map<number, Span[]>, node: number, from: number, ms: number): void =>
    void to.set(node, [...(to.get(node) ?? []), [from, from + ms]])
  const victims = random.below(nodes)
  for (let i = 0; i < fatal; i++) {
    const node = (victims + i) % nodes
    const at = random.next() * 30_000
    const kind = random.below(3)
    if (kind === 0) kills.set(node, at)
    else add(kind === 1 ? cuts : stops, node, at, 16_000 + random.next() * 30_000)
  }
  for (let i = random.below(4); i > 0; i--) {
    const node = (victims + fatal + random.below(nodes)) % nodes
    if (kills.has(node) || cuts.has(node) || stops.has(node)) continue
    const at = random.next() * 30_000
    if (random.chance(0.5)) add(cuts, node, at, random.next() * 3000)
    else add(stops, node, at, random.next() * 4000)
  }
  return {
    loss: random.chance(0.5) ? 0 : random.next() * 0.1,
    doubles: random.next() * 0.3,
    delay: 1 + random.next() * (random.chance(0.3) ? 900 : 20),
    cuts,
    stops,
    kills,
  }
}

function play(seed: number): { lost: number; fatal: number } {
  const random = new Random(seed)
  const nodes = 2 + random.below(3)
  const fatal = random.below(3)
  const cluster = new VirtualCluster(nodes, 1 + random.below(3), weatherOf(random, nodes, fatal), random)
  const kinds = ['a', 'b'].map(name => kindOf(name))
  const data: { datum: Datum; value: string }[] = Array.from({ length: 3 }, (_, i) => {
    const datum = new Datum(null, false)
    datum.current.value = `initial${i}`
    return { datum, value: `initial${i}` }
  })
  const { engine } = cluster
  for (let i = 0, count = 5 + random.below(40); i < count; i++) {
    const reads = [...new Set(Array.from({ length: random.below(3) }, () => data[random.below(data.length)]))]
    const isNew = random.chance(0.5)
    const to = isNew ? { datum: new Datum(null, false, false), value: '' } : data[random.below(data.length)]
    assert.ok(to)
    const others = reads.filter(one => one !== undefined && one !== to) as typeof data
    const mode = isNew ? 'out' : 'inout'
    const run: Job['run'] = inputs => hash(`${seed}/${i}(${inputs.join()})`)
    const inputs = [...others, ...(isNew ? [] : [to])].map(({ value }) => value)
    const payload: Job = { run, ms: 20 + random.next() * (random.chance(0.25) ? 25_000 : 1500) }
    engine.submit(
      { kind: kinds[i % 2] as never, group: engine.root, demand: demandOf(1, 0, []), payload },
      [...others.map(({ datum }) => ({ datum, mode: 'in' as const })), { datum: to.datum, mode }],
      0,
    )
    // What a sequential run has there now.
    to.value = run(inputs)
    if (isNew) data.push(to)
  }
  cluster.run(LIMIT)
  for (const { datum, value } of data) assert.equal(datum.current.value, value)
  return { lost: cluster.lostNodes, fatal }
}

test(`${RUNS} programs on virtual clusters whose nodes and networks fail end as in one run after the other`, () => {
  let all = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    try {
      const { lost, fatal } = play(seed)
      assert.ok(lost <= fatal, `${lost} nodes were given up, and ${fatal} had a reason`)
      all += lost
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
  assert.ok(all > RUNS / 4, `nodes were lost ${all} times`)
})

/** The same with values that stay on nodes. The program waits for some on its way, and for all at the end. */
async function playStaying(seed: number): Promise<{ lost: number; again: number; brought: number }> {
  const random = new Random(seed)
  const nodes = 2 + random.below(3)
  const weather = weatherOf(random, nodes, random.below(3))
  const cluster = new VirtualCluster(nodes, 1 + random.below(3), weather, random, true)
  const { engine, values } = cluster
  assert.ok(values)
  const kinds = ['a', 'b'].map(name => kindOf(name))
  const data: { datum: Datum; text: string }[] = Array.from({ length: 3 }, (_, i) => {
    const datum = new Datum(null, false)
    datum.current.value = values.make(`initial${i}`, null)
    return { datum, text: `initial${i}` }
  })
  const waits: Promise<unknown>[] = []
  const wait = (version: Version, text: string): void =>
    void waits.push(values.wait(version).then(() => assert.ok([text, null].includes(values.textOf(version)))))
  const count = 5 + random.below(30)
  for (let i = 0; i < count; i++) {
    const reads = [...new Set(Array.from({ length: random.below(3) }, () => data[random.below(data.length)]))]
    const isNew = random.chance(0.6)
    const to = isNew ? { datum: new Datum(null, false, false), text: '' } : data[random.below(data.length)]
    assert.ok(to)
    const others = reads.filter(one => one !== undefined && one !== to) as typeof data
    const run: Job['run'] = inputs => hash(`${seed}/${i}(${inputs.join()})`)
    const payload: Job = { run, ms: 20 + random.next() * (random.chance(0.2) ? 15_000 : 1500) }
    engine.submit(
      { kind: kinds[i % 2] as never, group: engine.root, demand: demandOf(1, 0, []), payload },
      [
        ...others.map(({ datum }) => ({ datum, mode: 'in' as const })),
        { datum: to.datum, mode: isNew ? 'out' : 'inout' },
      ],
      0,
    )
    to.text = run([...others, ...(isNew ? [] : [to])].map(({ text }) => text))
    if (isNew) data.push(to)
    if (random.chance(0.1)) wait(to.datum.current, to.text)
  }
  // Some time after all have ended, so that nodes are lost that nothing runs on.
  const last = data.map(
    ({ datum, text }) =>
      new Promise<void>((resolve, reject) => {
        cluster.later(random.next() * 60_000, () => {
          const version = datum.current
          values
            .wait(version)
            .then(() => assert.equal(values.textOf(version), text))
            .then(resolve, reject)
        })
      }),
  )
  await cluster.runAll(LIMIT, [...waits, ...last])
  return { lost: cluster.lostNodes, again: cluster.begun - count, brought: values.brought }
}

const STAYING = RUNS / 4

test(`${STAYING} programs whose values stay on virtual nodes end as in one run after the other`, async () => {
  let [lost, again, brought] = [0, 0, 0]
  for (let seed = 1; seed <= STAYING; seed++) {
    try {
      const found = await playStaying(seed)
      lost += found.lost
      again += found.again
      brought += found.brought
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
    }
  }
  assert.ok(lost > STAYING / 4 && again > STAYING / 4 && brought > STAYING, `${lost} ${again} ${brought}`)
})
