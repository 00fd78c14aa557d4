import assert from 'node:assert/strict'
import type { Version } from '../../src/core/data/datum.ts'
import type { Lane, Node } from '../../src/core/schedule/machine.ts'
import type { Group } from '../../src/core/tasks/group.ts'
import type { Demand } from '../../src/core/tasks/demand.ts'
import type { Task } from '../../src/core/tasks/task.ts'
import type { FakeMachine } from './fake-machine.ts'

const demandOf = (task: Task): Demand => task.implementation.demand ?? task.demand

/** What must hold whenever the engine has decided. */
export function checkMachine(machine: FakeMachine): void {
  const { engine } = machine
  let ready = 0
  const live = new Map<Group, number>()
  const members = new Map<Group, Set<Task>>()
  const onLane = new Set<Task>()
  const holders = new Map<Version, Task>()
  const teams = new Map<Version, number>()
  for (const node of engine.nodes) checkNode(node, onLane)
  for (const task of machine.tasks) {
    if (task.state === 'ready') ready++
    if (!task.ended) {
      for (let at: Group | null = task.group; at; at = at.parent) add(live, at, 1)
      let own = members.get(task.group)
      if (!own) members.set(task.group, (own = new Set()))
      own.add(task)
    }
    const holdsLane = task.state === 'running' || (task.state === 'stopping' && task.node >= 0)
    assert.equal(onLane.has(task), holdsLane, `${task.name} (${task.state}) and its lane disagree`)
    if (!holdsLane) continue
    for (const { mode, write } of task.accesses) {
      if (mode === 'concurrent' && write?.datum.path === null) {
        const node = teams.get(write) ?? task.node
        assert.equal(task.node, node, `${task.name} runs on another node than the rest of its team`)
        teams.set(write, node)
      }
      if (mode !== 'commutative' || !write) continue
      const other = holders.get(write)
      assert(!other || other === task, `${task.name} and ${other?.name} hold one COMMUTATIVE datum`)
      holders.set(write, task)
    }
  }
  assert.equal(engine.readyCount + engine.looks.count, ready, 'the ready queue has lost count')
  checkGroup(engine.root, live, members)
}

const add = <K>(counts: Map<K, number>, key: K, n: number): void => {
  counts.set(key, (counts.get(key) ?? 0) + n)
}

function checkGroup(group: Group, live: Map<Group, number>, members: Map<Group, Set<Task>>): void {
  assert.equal(group.live, live.get(group) ?? 0, `group '${group.name}' has lost count`)
  const own = members.get(group)
  let listed = 0
  let before: Task | null = null
  for (let at = group.first; at; before = at, at = at.next, listed++) {
    assert(own?.has(at), `${at.name} is not a member of group '${group.name}'`)
    assert.equal(at.before, before)
  }
  assert.equal(listed, own?.size ?? 0, `group '${group.name}' has lost members`)
  for (const child of group.children) checkGroup(child, live, members)
}

function checkNode(node: Node, onLane: Set<Task>): void {
  let idle = 0
  let memory = 0
  let cpus = 0
  let claims = 0
  const lent = new Map<Task, number>()
  const heads = new Set<Task>()
  for (const lane of node.lanes) {
    if (lane.idle) idle++
    claims += lane.resuming.size
    if (lane.lentTo) add(lent, lane.lentTo, 1)
    assert(!lane.lentTo || lane.queue.size === 0, 'a lane is lent and in use')
    checkLoad(lane)
    let position = 0
    let shares = 0
    for (const task of lane.queue) {
      assert(!onLane.has(task), `${task.name} is on two lanes`)
      onLane.add(task)
      assert.equal(task.node, node.index)
      assert.equal(task.lane, lane.index)
      const demand = demandOf(task)
      assert(
        demand.tags.every(tag => node.tags.has(tag)),
        `${task.name} runs where its tags are not`,
      )
      memory += demand.memory
      if (lane.shared > 0) {
        assert(demand.cpus < 1, `${task.name} is on a lane that others share`)
        shares += demand.cpus
        cpus += demand.cpus
      } else if (position++ === 0) {
        heads.add(task)
        cpus += demand.cpus
      } else {
        assert(task.queueable && demand.cpus === 1 && demand.memory === 0, `${task.name} must not queue`)
        assert(!task.timed, `${task.name} has a timeout and queues`)
      }
    }
    assert(shares <= 1 && lane.shared === Math.round(shares * 1000), `shares of a lane: ${shares}`)
    for (const task of lane.resuming) assert.equal(task.state, 'blocked')
  }
  for (const head of heads) assert.equal(lent.get(head) ?? 0, demandOf(head).cpus - 1, 'CPUs held')
  for (const task of lent.keys())
    assert(heads.has(task), `a lane is lent to ${task.name}, which does not run`)
  assert(cpus <= node.cpus, `${cpus} CPUs in use on a node of ${node.cpus}`)
  assert(memory <= node.memory, `${memory} bytes in use on a node of ${node.memory}`)
  assert.equal(node.freeLanes, idle, 'freeLanes')
  assert.equal(node.freeMemory, node.memory - memory, 'freeMemory')
  assert.equal(node.claims, claims, 'claims')
}

function checkLoad(lane: Lane): void {
  let load = 0
  if (lane.shared === 0) for (const task of lane.queue) load += task.charge
  if (load === Infinity) assert.equal(lane.load, Infinity)
  else assert(Math.abs(lane.load - load) < 1e-6, `load of a lane is ${lane.load}, its tasks have ${load}`)
}

/** What must hold when nothing is left to do. */
export function checkEnd(machine: FakeMachine): void {
  const { engine } = machine
  assert.deepEqual(machine.story.open(), [], 'every task has come to an end')
  for (const task of machine.tasks) {
    assert(task.ended, `${task.name}: ${task.story()}`)
    assert.equal(task.calls?.size ?? 0, 0, `${task.name} holds on to what it called`)
  }
  assert.equal(engine.readyCount, 0)
  assert.equal(engine.looks.count, 0)
  assert.equal(machine.attempts.size, 0)
  for (const node of engine.nodes) {
    assert.equal(node.freeLanes, node.cpus)
    assert.equal(node.freeMemory, node.memory)
    assert.equal(node.claims, 0)
    for (const lane of node.lanes) assert.equal(lane.load, 0)
  }
  for (const version of machine.versions) checkVersion(machine, version)
}

function checkVersion(machine: FakeMachine, version: Version): void {
  assert.equal(version.datum.users?.size ?? 0, 0, 'memory in place holds on to its users')
  assert.equal(version.readers, 0, `version ${version.id} still has readers`)
  assert.equal(version.waiters, null, `version ${version.id} still has waiters`)
  assert.equal(version.afterReaders, null, `version ${version.id} still has writers waiting for its readers`)
  assert.equal(
    version.producer === null || version.state !== 'ready',
    true,
    'a committed version has no producer',
  )
  if (version.value === undefined) return
  for (let at: Version | null = version.datum.current; at; at = at.previous) if (at === version) return
  assert.fail(`version ${version.id} (${version.state}) is not needed any more and was never discarded`)
}
