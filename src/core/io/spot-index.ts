import type { Device } from './device.ts'
import type { IoNode } from './io-node.ts'
import { LeastTree } from './least-tree.ts'
import type { Amounts } from './least-tree.ts'

/** With fewer nodes than this it is quicker to look at all of them. */
export const MANY_NODES = 17

/** What a task asks for, and who can say whether a place is really for it. */
export interface Search {
  /** The only device that will do; null if others will, too. */
  pinned: Device | null
  wish: Amounts
  /** The bandwidth that the task would hold; negative if it cannot start there. */
  onDevice(device: Device): number
  onNode(node: IoNode, bandwidth: number): boolean
}

interface Found {
  node: IoNode
  device: Device
  bandwidth: number
}

/** Equal devices of several nodes. */
interface Layer {
  /** Those that belong to one node each. */
  readonly devices: Device[]
  tree: LeastTree
  readonly shared: Device[]
}

/** Knows which device of a layer has least to do, and which node most free slots, however many there are. */
export class SpotIndex {
  readonly #nodes: readonly IoNode[]
  /** Highest first. */
  readonly #layers: Layer[] = []
  /** Where each device of a node is: its layer, and its place there. */
  readonly #places: { layer: Layer; place: number }[] = []
  readonly #slots: LeastTree
  readonly #slotsOn: (device: Device) => number
  readonly #changed = new Set<IoNode>()

  constructor(nodes: readonly IoNode[], devices: readonly Device[], slots: (device: Device) => number) {
    this.#nodes = nodes
    this.#slotsOn = slots
    const byRank = new Map<number, Layer>()
    for (const device of [...devices].sort((a, b) => a.rank - b.rank || (a.node ?? -1) - (b.node ?? -1))) {
      let layer = byRank.get(device.rank)
      if (!layer) {
        byRank.set(device.rank, (layer = { devices: [], tree: new LeastTree(0), shared: [] }))
        this.#layers.push(layer)
      }
      if (device.node === null) layer.shared.push(device)
      else this.#places[device.index] = { layer, place: layer.devices.push(device) - 1 }
    }
    for (const layer of this.#layers) layer.tree = new LeastTree(layer.devices.length)
    this.#slots = new LeastTree(nodes.length)
    for (const node of nodes) this.#changed.add(node)
  }

  /** Something of the node, or of one of its own devices, is not what it was. */
  changed(node: IoNode): void {
    this.#changed.add(node)
  }

  hasSlots(): boolean {
    this.#refresh()
    return this.#slots.least(NOTHING, () => true) >= 0
  }

  /** The highest layer that will do; there the device with least to do, or the node with most free slots. */
  find(search: Search): Found | null {
    this.#refresh()
    for (const layer of this.#layers) {
      let best: Found | null = null
      for (const device of layer.shared) {
        if (search.pinned && search.pinned !== device) continue
        const bandwidth = search.onDevice(device)
        if (bandwidth < 0) continue
        const suits = (node: IoNode): boolean =>
          node.layers.includes(device) && search.onNode(node, bandwidth)
        const node = this.roomiest(search.wish, suits)
        if (node && !(best && device.running.size >= best.device.running.size)) {
          best = { node, device, bandwidth }
        }
      }
      const own = this.#leastBusy(layer, search)
      if (own && !(best && own.device.running.size >= best.device.running.size)) best = own
      if (best) return best
    }
    return null
  }

  /** The node with most free slots, of those that have the bandwidth. */
  roomiest(wish: Amounts, suits: (node: IoNode) => boolean): IoNode | null {
    this.#refresh()
    const accepts = (place: number): boolean => suits(this.#nodes[place] as IoNode)
    return this.#nodes[this.#slots.least({ ...wish, room: 0, tasks: 0 }, accepts)] ?? null
  }

  #leastBusy({ devices, tree }: Layer, search: Search): Found | null {
    const { pinned, wish, onDevice, onNode } = search
    let best: Found | null = null
    const accepts = (device: Device): boolean => {
      const node = this.#nodes[device.node as number] as IoNode
      if (node.freeSlots <= 0) return false
      const bandwidth = onDevice(device)
      if (bandwidth < 0 || !onNode(node, bandwidth)) return false
      best = { node, device, bandwidth }
      return true
    }
    if (pinned) {
      if (this.#places[pinned.index]?.layer.tree === tree) accepts(pinned)
    } else tree.least(wish, place => accepts(devices[place] as Device))
    return best
  }

  #refresh(): void {
    if (this.#changed.size === 0) return
    for (const node of this.#changed) {
      const { read, write, layers, freeSlots } = node
      const hasSlots = freeSlots > 0
      const spare = { read: read.spare, write: write.spare, room: Infinity, tasks: Infinity }
      this.#slots.update(node.node.index, hasSlots ? -freeSlots : Infinity, spare)
      for (const device of layers) {
        const at = this.#places[device.index]
        if (!at) continue
        at.layer.tree.update(at.place, hasSlots ? device.running.size : Infinity, {
          read: Math.min(device.read.spare, spare.read),
          write: Math.min(device.write.spare, spare.write),
          room: device.free,
          tasks: this.#slotsOn(device),
        })
      }
    }
    this.#changed.clear()
  }
}

const NOTHING: Amounts = { read: -Infinity, write: -Infinity, room: 0, tasks: 0 }
