import assert from 'node:assert/strict'
import type { AccessMode } from '../../src/core/data/datum.ts'
import { INSIDE_DATA, isSame, usesOf } from './program.ts'
import type { Call, Program, Use } from './program.ts'
import { effect, fresh, plus, show } from './values.ts'
import type { Value } from './values.ts'

/**
 * A sequential interpreter of random programs: one task after the other, in the order of the program. It
 * shares no code with the engine. How each task ends is given by `verdict`; the values follow from that.
 */

export interface Verdict {
  end: 'ok' | 'partial' | 'bad'
  /** Its early output was committed, whatever came later. */
  early: boolean
}

export type Judge = (uid: string, call: Call, inputsOk: boolean) => Verdict

/** What a sequential run determines by itself. */
export const exactly: Judge = (_uid, call, inputsOk) => {
  if (!inputsOk) return { end: 'bad', early: false }
  if (call.failures <= call.retries) return { end: 'ok', early: call.early }
  return { end: call.onFailure === 'ignore' ? 'partial' : 'bad', early: call.early }
}

interface Cell {
  ok: boolean
  value: Value
  /** The tasks whose failure may be named as the reason. */
  causes: Set<string>
  team: { mode: AccessMode; base: Cell; open: boolean } | null
}

interface Place {
  inPlace: boolean
  /** Oldest first; the last one is what the next reader sees. */
  cells: Cell[]
}

/** What a program, or a task that calls tasks, can name: its data, and the results of its calls so far. */
interface World {
  places: Place[]
  results: Place[]
}

export interface Summary {
  ok: boolean
  value: string
  causes: Set<string>
}

export interface Expectation {
  data: Summary[]
  results: Summary[]
  /** Per task: whether its inputs were there, and whose failures may be the cause if not. */
  tasks: Map<string, { verdict: Verdict; inputsOk: boolean; causes: Set<string> }>
}

const top = (place: Place): Cell => place.cells.at(-1) as Cell

const newPlace = (inPlace: boolean, name: string): Place => ({
  inPlace,
  cells: [{ ok: true, value: fresh(name), causes: new Set(), team: null }],
})

const close = (place: Place): void => {
  const { team } = top(place)
  if (team) team.open = false
}

export function interpret(program: Program, judge: Judge): Expectation {
  const places = program.data.map(({ inPlace }, i) => newPlace(inPlace, `initial${i}`))
  const world: World = { places, results: [] }
  const tasks: Expectation['tasks'] = new Map()
  for (const [number, step] of program.steps.entries()) {
    switch (step.do) {
      case 'call':
        perform(String(number), step.call, world, judge, tasks)
        break
      case 'read':
        close(places[step.datum] as Place)
        break
      case 'write': {
        const place = places[step.datum] as Place
        place.cells.push({ ok: true, value: fresh(`main${number}`), causes: new Set(), team: null })
        break
      }
      case 'fallBack': {
        const place = placeOf(world, step)
        if (!place) break
        close(place)
        // A result has nothing before it: if it never came, it stays away.
        while (place.cells.length > 1 && !top(place).ok) place.cells.pop()
        break
      }
      case 'remove':
        places[step.datum] = newPlace(program.data[step.datum]?.inPlace ?? false, `fresh${number}`)
        break
      case 'pause':
      case 'wait':
      case 'cancel':
      case 'cancelTask':
      case 'acknowledge':
      case 'close':
        break
    }
  }
  return { data: places.map(summary), results: world.results.map(summary), tasks }
}

const summary = (place: Place): Summary => {
  const { ok, value, causes } = top(place)
  return { ok, value: show(value), causes }
}

const placeOf = ({ places, results }: World, { datum, result }: Omit<Use, 'mode'>): Place | undefined =>
  result ? results.at(-1 - datum) : places[datum]

function perform(uid: string, call: Call, world: World, judge: Judge, tasks: Expectation['tasks']): void {
  const uses = usesOf(call, world.results.length)
  const reads: Cell[] = []
  const inputs: string[] = []
  const writes: { cell: Cell; index: number; adds: boolean }[] = []
  /** What this call has already written, and what it was before. */
  const own = new Map<Place, { cell: Cell; before: Cell; mode: AccessMode }>()
  for (const [index, use] of uses.entries()) {
    const place = placeOf(world, use) as Place
    let mode = place.inPlace && use.mode === 'out' ? 'inout' : use.mode
    const mine = own.get(place)
    if (mode === 'in') {
      if (!mine) close(place)
      const cell = mine ? mine.before : top(place)
      reads.push(cell)
      inputs.push(show(cell.value))
      continue
    }
    const joins = mode === 'concurrent' || mode === 'commutative'
    if (mine) {
      // The same datum once more: one new version is made, in the way of the first access that writes it.
      if (mine.mode === 'concurrent' || mine.mode === 'commutative') mode = mine.mode
      else if (joins) mode = 'inout'
      if (mode !== 'out') reads.push(mine.before)
      if (mode === 'inout') inputs.push(show(mine.before.value))
      writes.push({ cell: mine.cell, index, adds: mode === mine.mode && mode !== 'out' && mode !== 'inout' })
      continue
    }
    let before = top(place)
    let cell: Cell
    if (joins && before.team?.open && before.team.mode === mode) {
      cell = before
      before = before.team.base
    } else {
      close(place)
      const team = joins ? { mode, base: before, open: true } : null
      cell = { ok: true, value: before.value, causes: new Set(), team }
      place.cells.push(cell)
    }
    own.set(place, { cell, before, mode })
    if (mode !== 'out') reads.push(before)
    if (mode === 'inout') inputs.push(show(before.value))
    writes.push({ cell, index, adds: joins })
  }

  const result: Cell = { ok: true, value: fresh(''), causes: new Set(), team: null }
  writes.push({ cell: result, index: uses.length, adds: false })
  world.results.push({ inPlace: false, cells: [result] })

  const inputsOk = reads.every(({ ok }) => ok)
  const verdict = judge(uid, call, inputsOk)
  const causes = new Set<string>(inputsOk ? [uid] : reads.flatMap(cell => [...cell.causes]))
  tasks.set(uid, { verdict, inputsOk, causes })
  if (verdict.end !== 'bad') assert(inputsOk, `task ${uid} ended well, but one of its inputs never came`)
  if (call.inside.length > 0 && verdict.end === 'ok') {
    const places = INSIDE_DATA.map(({ inPlace }, i) => newPlace(inPlace, `${uid}/initial${i}`))
    const inside: World = { places, results: [] }
    for (const [i, child] of call.inside.entries()) perform(`${uid}/${i}`, child, inside, judge, tasks)
    for (const place of [...places, ...inside.results]) {
      assert(top(place).ok, `task ${uid} ended well, but what it called did not`)
      inputs.push(show(top(place).value))
    }
  }
  const early = verdict.early ? earlyIndex(call, uses, use => placeOf(world, use)?.inPlace ?? false) : -1
  for (const { cell, index, adds } of writes) {
    if (index === early) cell.value = fresh(effect(uid, index, inputs, false))
    else if (verdict.end === 'bad') {
      cell.ok = false
      for (const cause of causes) cell.causes.add(cause)
    } else {
      const made = effect(uid, index, inputs, verdict.end === 'partial')
      cell.value = adds ? plus(cell.value, made) : fresh(made)
    }
  }
}

/** Which access is committed early: the first plain output of a datum that the call uses once, or its result. */
export function earlyIndex(call: Call, uses: readonly Use[], inPlace: (use: Use) => boolean): number {
  if (call.inside.length > 0) return -1
  const index = uses.findIndex(
    use =>
      (use.mode === 'out' || use.mode === 'inout') &&
      !inPlace(use) &&
      uses.filter(other => isSame(other, use)).length === 1,
  )
  return index < 0 ? uses.length : index
}
