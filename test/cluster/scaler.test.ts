import assert from 'node:assert/strict'
import test from 'node:test'
import { ASK_EVERY, Scaler } from '../../src/cluster/elastic/scaler.ts'
import type { ScalerNode } from '../../src/cluster/elastic/scaler.ts'
import { parseSlurm, slurmTime, timeLeft } from '../../src/cluster/elastic/slurm-options.ts'

/** Numbers that look random and are the same for each seed. */
function generator(seed: number): () => number {
  let state = (seed * 40503 + 12345) >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

interface Job {
  startsAt: number
  endsAt: number
}

/** Work that comes in waves, a queue that gives nodes late or never, jobs that end: on a virtual clock. */
function play(seed: number): {
  done: number
  all: number
  lost: number
  most: number
  end: number
  nodes: number
} {
  const random = generator(seed)
  const [min, max] = [Math.floor(random() * 2), 1 + Math.floor(random() * 8)]
  const limits = { min: Math.min(min, max), max, idle: 5000 + random() * 30_000 }
  const scaler = new Scaler(limits)
  const takes = 200 + random() * 9000
  const wall = 60_000
  const waves = Array.from({ length: 3 }, () => ({
    at: random() * 200_000,
    tasks: Math.floor(random() * 60),
  }))
  const all = waves.reduce((sum, { tasks }) => sum + tasks, 0)
  let waiting = 0
  let done = 0
  let lost = 0
  let most = 0
  let last = 0
  const jobs: Job[] = []
  const nodes = new Map<number, { cpus: number[]; endsAt: number; isLeaving: boolean }>()
  let now = 0
  for (; now < 3_600_000; now += 250) {
    for (const wave of waves) if (wave.at >= now - 250 && wave.at < now) waiting += wave.tasks
    for (const job of jobs.splice(0)) {
      if (job.startsAt > now) jobs.push(job)
      else nodes.set(++last, { cpus: [0, 0], endsAt: job.endsAt, isLeaving: false })
    }
    for (const [id, node] of nodes) {
      node.cpus = node.cpus.map(until => {
        if (until === 0 || until > now) return until
        done++
        return 0
      })
      if (node.endsAt <= now) {
        const cut = node.cpus.filter(until => until > 0).length
        lost += cut
        waiting += cut
      }
      if (node.endsAt <= now || (node.isLeaving && node.cpus.every(until => until === 0))) {
        nodes.delete(id)
        scaler.left(id)
        continue
      }
      // What the core does: nothing starts that is expected to outlast the node.
      if (node.isLeaving || now + takes > node.endsAt - 3000) continue
      node.cpus = node.cpus.map(until => (until === 0 && waiting > 0 ? (waiting--, now + takes) : until))
    }
    most = Math.max(most, nodes.size + jobs.length)
    const view: ScalerNode[] = [...nodes].map(([id, { cpus, endsAt }]) => ({
      id,
      cpus: 2,
      isIdle: cpus.every(until => until === 0),
      until: endsAt - 3000,
    }))
    const { ask, giveBack } = scaler.decide({
      now,
      waiting,
      meanMs: done === 0 ? null : takes,
      nodes: view,
      coming: jobs.length,
    })
    for (let i = 0; i < ask; i++) {
      const startsAt = now + 500 + random() * 20_000
      jobs.push({ startsAt, endsAt: startsAt + wall })
    }
    for (const id of giveBack) {
      const node = nodes.get(id)
      if (node) node.isLeaving = true
    }
    if (done === all && now > 210_000 && nodes.size <= limits.min && jobs.length === 0) break
  }
  return { done, all, lost, most: most - max, end: now, nodes: nodes.size - limits.min }
}

test('nodes are asked for while work waits, never too many, and given back: 2,000 runs', () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const { done, all, lost, most, nodes } = play(seed)
    assert.equal(done, all, `seed ${seed}: all work is done`)
    assert.equal(lost, 0, `seed ${seed}: nothing is cut off`)
    assert.ok(most <= 0, `seed ${seed}: ${most} over the limit`)
    assert.ok(nodes <= 0, `seed ${seed}: idle nodes are given back`)
  }
})

test('nodes are not asked for more often than a site likes, nor for work that is over soon', () => {
  const scaler = new Scaler({ min: 0, max: 8, idle: 1000 })
  const view = { waiting: 100, meanMs: 1, coming: 0 }
  const node = { id: 1, cpus: 2, isIdle: false, until: Infinity }
  assert.equal(scaler.decide({ ...view, now: 0, meanMs: null, nodes: [] }).ask, 1)
  assert.equal(scaler.decide({ ...view, now: 100, meanMs: null, nodes: [] }).ask, 0)
  const later = ASK_EVERY + 100
  assert.equal(scaler.decide({ ...view, now: later, nodes: [node] }).ask, 1)
  const long = scaler.decide({ ...view, now: 2 * later, meanMs: 60_000, nodes: [node] })
  assert.equal(long.ask, 7)
})

test('what --slurm says', () => {
  assert.deepEqual(parseSlurm('partition=main,time=1h', '0..8'), {
    min: 0,
    max: 8,
    idle: 120_000,
    block: 1,
    words: ['--partition=main', '--time=0-01:00:00', '--exclusive'],
  })
  const given = parseSlurm('account=a,cpus-per-task=4,block=2,idle=30s', '3')
  assert.deepEqual([given.min, given.max, given.block, given.idle], [3, 3, 2, 30_000])
  assert.deepEqual(given.words, ['--account=a', '--cpus-per-task=4'])
  for (const [slurm, nodes] of [
    ['partition=main', undefined],
    ['partition=main', 'local:4'],
    ['partition=main', '8..2'],
    ['partition=main', '0..0'],
    ['=main', '0..2'],
    ['block=0', '0..2'],
  ] as const) {
    assert.throws(() => parseSlurm(slurm, nodes), { code: 'MR_NODES' }, `${slurm} ${nodes}`)
  }
})

test('times as Slurm writes them', () => {
  assert.equal(slurmTime('90s'), '0-00:01:30')
  assert.equal(slurmTime('36h'), '1-12:00:00')
  assert.equal(slurmTime('10:00'), '10:00')
  assert.equal(timeLeft('59'), 59_000)
  assert.equal(timeLeft('1:00'), 60_000)
  assert.equal(timeLeft('1-00:00:01'), 86_401_000)
  assert.equal(timeLeft('UNLIMITED'), Infinity)
})
