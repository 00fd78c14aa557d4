import assert from 'node:assert/strict'
import test from 'node:test'
import { AgentLease, CoordinatorLease, LEASE } from '../../src/cluster/lease/lease.ts'

/** Numbers that look random and are the same for each seed. */
function generator(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0 || 1
  return () => {
    state ^= state << 13
    state >>>= 0
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}

interface Packet {
  at: number
  to: 'agent' | 'coordinator'
  incarnation: number
  question: number
}

interface Fate {
  /** When the agent ended its own work, and when the coordinator gave it up. */
  endedAt: number
  deadAt: number
  /** The longest that the network, or a stopped agent, was silent. */
  silence: number
}

interface Weather {
  loss: number
  delay: number
  doubles: number
  /** From, until, and which ways are cut. */
  cuts: [number, number, 'both' | 'agent' | 'coordinator'][]
  stops: [number, number][]
}

const END = 60_000
const STEP = 50

/** One agent and the coordinator on a virtual clock, with a network that loses, delays, reorders, doubles and splits. */
function play(random: () => number, weather: Weather): Fate {
  const agent = new AgentLease(0)
  const coordinator = new CoordinatorLease(7, 0)
  let packets: Packet[] = []
  const fate: Fate = { endedAt: Infinity, deadAt: Infinity, silence: 0 }
  let lastHeard = 0
  const isCut = (now: number, to: Packet['to']): boolean =>
    weather.cuts.some(([from, until, ways]) => now >= from && now < until && (ways === 'both' || ways === to))
  const send = (now: number, packet: Omit<Packet, 'at'>): void => {
    const copies = random() < weather.doubles ? 2 : 1
    for (let i = 0; i < copies; i++) {
      if (random() < weather.loss || isCut(now, packet.to)) continue
      packets.push({ ...packet, at: now + random() * weather.delay })
    }
  }
  for (let now = 0; now <= END; now += STEP) {
    const due = packets.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)
    packets = packets.filter(({ at }) => at > now)
    const isStopped = weather.stops.some(([from, until]) => now >= from && now < until)
    for (const packet of due) {
      if (packet.to === 'agent') {
        if (isStopped) packets.push(packet)
        else agent.answered(packet.question)
        continue
      }
      const answer = coordinator.asked(packet.incarnation, packet.question, now)
      if (answer === null) continue
      fate.silence = Math.max(fate.silence, now - lastHeard)
      lastHeard = now
      send(now, { to: 'agent', incarnation: 7, question: answer })
    }
    if (coordinator.tick(now) === 'dead') fate.deadAt = Math.min(fate.deadAt, now)
    if (isStopped) continue
    const action = agent.tick(now)
    if (action === 'end') fate.endedAt = now
    else if (action) send(now, { to: 'coordinator', incarnation: 7, question: action.ask })
  }
  fate.silence = Math.max(fate.silence, END - lastHeard)
  return fate
}

function weatherOf(random: () => number, withStops: boolean): Weather {
  const cuts: Weather['cuts'] = []
  const stops: Weather['stops'] = []
  for (let i = Math.floor(random() * 4); i > 0; i--) {
    const from = random() * 40_000
    const ways = (['both', 'agent', 'coordinator'] as const)[Math.floor(random() * 3)] ?? 'both'
    cuts.push([from, from + random() * 20_000, ways])
  }
  if (withStops && random() < 0.5) stops.push([random() * 40_000, random() * 60_000])
  const isBad = random() < 0.3
  return {
    loss: isBad ? random() : random() * 0.1,
    delay: random() * 4000,
    doubles: random() * 0.3,
    cuts,
    stops,
  }
}

test('an agent that is cut off ends its work before the coordinator begins it elsewhere: 5,000 networks', () => {
  for (let seed = 1; seed <= 5000; seed++) {
    const random = generator(seed)
    const { endedAt, deadAt } = play(random, weatherOf(random, false))
    if (deadAt === Infinity) continue
    assert.ok(endedAt < deadAt, `seed ${seed}: the agent ended at ${endedAt}, and was given up at ${deadAt}`)
  }
})

test('a stopped agent ends its work at the first look at the clock after it goes on: 2,000 networks', () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const random = generator(seed)
    const weather = weatherOf(random, true)
    const { endedAt, deadAt } = play(random, weather)
    if (deadAt === Infinity || deadAt > END - LEASE.dead) continue
    const [stop] = weather.stops
    const until = stop ? Math.max(deadAt, stop[1] + STEP) : deadAt
    if (until >= END - STEP) continue
    assert.ok(endedAt <= until, `seed ${seed}: ended at ${endedAt}, not by ${until}`)
  }
})

test('no false death: a stop of 4 s, a cut of 3 s with the silence of TCP after it, slow and lossy networks', () => {
  const calm: Weather = { loss: 0, delay: 900, doubles: 0.2, cuts: [], stops: [] }
  for (let seed = 1; seed <= 1000; seed++) {
    const random = generator(seed)
    const at = random() * 40_000
    const stopped = play(random, { ...calm, stops: [[at, at + 4000]] })
    const cut = play(random, { ...calm, cuts: [[at, at + 6100, 'both']] })
    const lossy = play(random, { ...calm, loss: 0.1 })
    for (const { endedAt, deadAt } of [stopped, cut, lossy]) {
      assert.equal(endedAt, Infinity)
      assert.equal(deadAt, Infinity)
    }
  }
})

test('questions of another incarnation, and those that come after the end, are not answered', () => {
  const lease = new CoordinatorLease(2, 0)
  assert.equal(lease.asked(1, 1, 10), null)
  assert.equal(lease.asked(2, 1, 10), 1)
  assert.equal(lease.tick(10 + LEASE.suspect), 'suspect')
  assert.equal(lease.asked(2, 2, 11 + LEASE.suspect), 2)
  assert.equal(lease.health, 'alive')
  assert.equal(lease.asked(2, 3, 40_000), null)
  assert.equal(lease.health, 'dead')
  lease.lost()
  assert.equal(lease.asked(2, 4, 40_001), null)
})
