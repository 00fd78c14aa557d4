import type { Instruction } from './instruction.ts'
import type { Orders } from './schedule/placement.ts'
import type { EngineParts, Readiness } from './schedule/readiness.ts'

/** Turns what the placement decides into instructions. */
export class Decisions {
  readonly #parts: EngineParts
  readonly #orders: Orders

  constructor(parts: EngineParts, readiness: Readiness) {
    this.#parts = parts
    this.#orders = ordersFor(parts, readiness)
  }

  take(now: number): Instruction[] {
    const { placement, instructions } = this.#parts
    this.#orders.now = now
    placement.decide(this.#orders)
    placement.lanes.recalls.decide(now, instructions.isEmpty, this.#orders.instruct)
    return instructions.take()
  }
}

function ordersFor({ io, observed, instructions }: EngineParts, readiness: Readiness): Orders {
  const orders: Orders = {
    now: 0,
    start: task => {
      task.move('running', orders.now)
      if (io.moves.prefetches) io.moves.want(task, -1)
      io.bound?.started(task)
      instructions.push({ type: 'start', task })
    },
    resume: task => {
      task.move('running', orders.now)
      const { id, node, lane } = task
      observed.observer?.({ type: 'resumed', at: orders.now, task: id, node, lane })
      instructions.push({ type: 'resume', task })
    },
    park: task => {
      task.move('parked', orders.now)
      readiness.wakeParked(task, orders.now)
    },
    instruct: one => instructions.push(one),
  }
  return orders
}
