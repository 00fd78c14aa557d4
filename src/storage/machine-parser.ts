import { parseBytes, parseCount, parseDuration, parseRate } from '../general/units.ts'
import type { Entry, YamlSource } from '../source/yaml-source.ts'

/** A storage device as the description gives it. What is null was left out. */
export interface MachineDevice {
  readonly name: string
  /** The folder under which data may be kept; without one the device exists for the simulator only. */
  readonly path: string | null
  /** Bytes per second. */
  readonly read: number | null
  readonly write: number | null
  /** Bytes. */
  readonly capacity: number | null
  /** One device that all nodes with this name see, with one budget. */
  readonly shared: boolean
  /** The CPUs that it is near to. */
  readonly cpus: readonly number[] | null
  /** Bytes that temporary data may take there. */
  readonly maxIntermediate: number | null
  /** For the simulator: milliseconds per access; how it behaves when many use it (docs/simulation.md). */
  readonly latency: number
  readonly stream: number | null
  readonly streamWrite: number | null
  readonly knee: number | null
  readonly falloff: number | null
  readonly oneArm: boolean
  readonly buffer: number | null
  /** Milliseconds. */
  readonly syncTime: number
}

export interface MachineNode {
  readonly name: string
  readonly cpus: number | null
  readonly memory: number | null
  readonly tags: readonly string[]
  /** Ids of its GPUs; null: found by the driver's tool. */
  readonly gpus: readonly string[] | null
  readonly ioExecutors: number | null
  /** Bytes per second of all its devices together. */
  readonly read: number | null
  readonly write: number | null
  readonly storage: readonly MachineDevice[]
  /** For the simulator: bytes per second from and to other nodes, and bytes of page cache. */
  readonly network: number | null
  readonly pageCache: number | null
  /** For the simulator: bytes per second from the page cache to one task; the CPUs' speed; real CPUs. */
  readonly cacheBandwidth: number | null
  readonly speed: number | null
  readonly cores: number | null
  /** How an agent is started there: local, ssh, ssh:user@host, slurm, or a command with {name} and {agent}. */
  readonly launch: string | null
}

const FILE_KEYS = ['nodes', 'storage', 'network']
const NODE_KEYS = [
  'name',
  'count',
  'cpus',
  'memory',
  'tags',
  'gpus',
  'ioExecutors',
  'bandwidth',
  'readBandwidth',
  'writeBandwidth',
  'storage',
  'network',
  'pageCache',
  'cacheBandwidth',
  'speed',
  'cores',
  'launch',
]
const DEVICE_KEYS = [
  'name',
  'path',
  'bandwidth',
  'readBandwidth',
  'writeBandwidth',
  'capacity',
  'shared',
  'cpus',
  'maxIntermediate',
  'latency',
  'streamBandwidth',
  'streamWriteBandwidth',
  'knee',
  'falloff',
  'oneArm',
  'writeBuffer',
  'syncTime',
]
export const MOST_NODES = 100_000
export const MOST_CPUS = 1_000_000
const MOST_GPUS = 4096

/** What the keys of a machine description mean; complains of what they cannot mean. */
export class MachineParser {
  readonly #source: YamlSource

  constructor(source: YamlSource) {
    this.#source = source
  }

  parse(): MachineNode[] {
    const source = this.#source
    const entries = source.map(source.root, '', FILE_KEYS)
    if (!entries) return []
    const everywhere = this.#devices(entries.get('storage'), true)
    const network = this.#rate(entries.get('network'))
    const given = entries.get('nodes')
    if (!given) {
      source.complain(0, "the file has no key 'nodes'", 'Write nodes: and a list of nodes below it.')
      return []
    }
    // A single node needs no list around it.
    const list = source.isMap(given) ? [given] : source.list(given)
    if (!list || list.length === 0) {
      const hint = 'Write one line beginning with "-" per node.'
      if (list) source.complain(source.at(given), 'nodes is an empty list', hint)
      else source.wrong(given, 'a list of nodes', hint)
      return []
    }
    const nodes = list.flatMap(entry => this.#node(entry, everywhere, network))
    this.#distinct(nodes, given)
    return nodes
  }

  #node(entry: Entry, everywhere: readonly MachineDevice[], network: number | null): MachineNode[] {
    const entries = this.#source.map(entry.value, entry.field, NODE_KEYS)
    if (!entries) return []
    const own = this.#devices(entries.get('storage'), false)
    const bandwidth = this.#rate(entries.get('bandwidth'))
    const node = {
      cpus: this.#count(entries.get('cpus'), 1, 'a whole number of CPUs from 1', MOST_CPUS),
      memory: this.#bytes(entries.get('memory')),
      tags: this.#tags(entries.get('tags')),
      gpus: this.#gpus(entries.get('gpus')),
      ioExecutors: this.#count(entries.get('ioExecutors'), 1, 'a whole number from 1', MOST_CPUS),
      read: this.#rate(entries.get('readBandwidth')) ?? bandwidth,
      write: this.#rate(entries.get('writeBandwidth')) ?? bandwidth,
      storage: [...own, ...everywhere.filter(({ name }) => !own.some(device => device.name === name))],
      network: this.#rate(entries.get('network')) ?? network,
      pageCache: this.#bytes(entries.get('pageCache')),
      cacheBandwidth: this.#rate(entries.get('cacheBandwidth')),
      speed: this.#number(entries.get('speed'), true),
      cores: this.#count(entries.get('cores'), 1, 'a whole number from 1'),
      launch: this.#optionalText(entries.get('launch')),
    }
    return this.#names(entries, entry).map(name => ({ name, ...node }))
  }

  /** One name, or several: `count: 3` makes n1, n2, n3 of n, and `n[01-12]` is short for twelve. */
  #names(entries: Map<string, Entry>, at: Entry): string[] {
    const given = entries.get('name')
    const name = given ? this.#text(given) : 'node'
    const counted = entries.get('count')
    const times = this.#source.times(at)
    const count = times ?? this.#count(counted, 1, `a whole number from 1 to ${MOST_NODES}`)
    if (name === null) return []
    if (count !== null && (count < 1 || count > MOST_NODES)) {
      const text = `${(times === null && counted?.field) || `the number of ${at.field}`} is ${count}`
      this.#source.complain(
        this.#source.at(counted ?? at),
        `${text}, not 1 to ${MOST_NODES}`,
        count < 1 ? 'Write how many there are.' : 'Use fewer nodes.',
      )
      return []
    }
    if (times !== null && counted) {
      this.#source.complain(
        this.#source.at(counted),
        `${at.field} has a number in front of it and a count`,
        'Leave out one of the two.',
      )
    }
    const range = /^(.*)\[(\d+)-(\d+)\](.*)$/.exec(name)
    if (!range) {
      if (count !== null) return Array.from({ length: count }, (_, i) => `${name}${i + 1}`)
      return counted ? [] : [name]
    }
    const [, before, first = '', last = '', after] = range
    const length = Number(last) - Number(first) + 1
    if (length < 1 || length > MOST_NODES) {
      this.#source.wrong(given ?? at, 'a range that goes up', 'Write the smaller number first: n[01-12].')
      return []
    }
    if (count !== null && count !== length) {
      this.#source.complain(
        this.#source.at(counted ?? at),
        `${counted?.field ?? `the number of ${at.field}`} is ${count}, but ${name} names ${length} nodes`,
        'Leave out one of the two.',
      )
    }
    const pad = (i: number): string => String(Number(first) + i).padStart(first.length, '0')
    return Array.from({ length }, (_, i) => `${before}${pad(i)}${after}`)
  }

  #devices(entry: Entry | undefined, shared: boolean): MachineDevice[] {
    if (!entry) return []
    const list = this.#source.list(entry)
    if (!list) {
      this.#source.wrong(entry, 'a list of devices', 'Write one line beginning with "-" per device.')
      return []
    }
    const devices: MachineDevice[] = []
    for (const item of list) {
      const device = this.#device(item, shared)
      if (!device) continue
      const same = devices.find(other => other.name === device.name)
      if (same) {
        const text = `${item.field} has the name '${device.name}', which another device of the node has`
        this.#source.complain(item.keyAt, text, 'Give each device a name of its own.')
      } else devices.push(device)
    }
    return devices
  }

  #device(item: Entry, shared: boolean): MachineDevice | null {
    const entries = this.#source.map(item.value, item.field, DEVICE_KEYS)
    if (!entries) return null
    const given = entries.get('name')
    const name = given ? this.#text(given) : null
    if (!given) {
      this.#source.complain(item.keyAt, `${item.field} has no name`, 'Give each device a name: name: ssd')
    }
    const bandwidth = this.#rate(entries.get('bandwidth'))
    const path = entries.get('path')
    // Read all of it, to report all mistakes at once.
    const device = {
      path: path ? this.#text(path) : null,
      read: this.#rate(entries.get('readBandwidth')) ?? bandwidth,
      write: this.#rate(entries.get('writeBandwidth')) ?? bandwidth,
      capacity: this.#bytes(entries.get('capacity')),
      shared: this.#truth(entries.get('shared')) ?? shared,
      cpus: this.#cpuList(entries.get('cpus')),
      maxIntermediate: this.#bytes(entries.get('maxIntermediate')),
      latency: this.#duration(entries.get('latency')),
      stream: this.#rate(entries.get('streamBandwidth')),
      streamWrite: this.#rate(entries.get('streamWriteBandwidth')),
      knee: this.#count(entries.get('knee'), 1, 'a whole number from 1'),
      falloff: this.#number(entries.get('falloff')),
      oneArm: this.#truth(entries.get('oneArm')) ?? false,
      buffer: this.#bytes(entries.get('writeBuffer')),
      syncTime: this.#duration(entries.get('syncTime')),
    }
    return name === null ? null : { name, ...device }
  }

  /** A shared device is one device, so all nodes must say the same of it. */
  #distinct(nodes: readonly MachineNode[], at: Entry): void {
    const names = new Set<string>()
    const shared = new Map<string, string>()
    const facts = ({ read, write, capacity, shared: isShared }: MachineDevice): string =>
      JSON.stringify([read, write, capacity, isShared])
    for (const { name, storage } of nodes) {
      if (names.has(name)) {
        const text = `two nodes have the name '${name}'`
        this.#source.complain(this.#source.at(at), text, 'Give each node a name of its own, or use count.')
        return
      }
      names.add(name)
      for (const device of storage) {
        const known = shared.get(device.name)
        if (device.shared && known === undefined) shared.set(device.name, facts(device))
        else if (known !== undefined && known !== facts(device)) {
          const text = `the shared device '${device.name}' is described in two ways`
          this.#source.complain(this.#source.at(at), text, 'Describe it once, under storage: beside nodes:.')
          return
        }
      }
    }
  }

  // --- single values ---

  #value<T>(
    entry: Entry | undefined,
    parse: (value: number | string) => T | null,
    expected: string,
    hint: string,
  ): T | null {
    if (!entry) return null
    const value = this.#source.scalar(entry)
    const parsed = typeof value === 'string' || typeof value === 'number' ? parse(value) : null
    return parsed ?? this.#source.wrong(entry, expected, hint)
  }

  #bytes(entry: Entry | undefined): number | null {
    return this.#value(entry, parseBytes, 'a size', 'Write a size such as 370GB or 1.5TiB.')
  }

  #rate(entry: Entry | undefined): number | null {
    const parse = (value: number | string): number | null => parseRate(value) || null
    return this.#value(entry, parse, 'a bandwidth above 0', 'Write MB/s as a number, or 2743MB/s, 1.2GiB/s.')
  }

  #duration(entry: Entry | undefined): number {
    return this.#value(entry, parseDuration, 'a duration', 'Write milliseconds, or 5ms, 1s.') ?? 0
  }

  #count(entry: Entry | undefined, least: number, wanted: string, most = Infinity): number | null {
    const parse = (value: number | string): number | null => {
      const count = parseCount(value)
      return count !== null && count >= least && count <= most ? count : null
    }
    const expected = most === Infinity ? wanted : `${wanted} to ${most}`
    return this.#value(entry, parse, expected, `Write ${expected}.`)
  }

  #number(entry: Entry | undefined, isPositive = false): number | null {
    const parse = (value: number | string): number | null => {
      const number = String(value).trim() === '' ? NaN : Number(value)
      return number >= 0 && number < Infinity && !(isPositive && number === 0) ? number : null
    }
    const expected = isPositive ? 'a number above 0' : 'a number from 0'
    return this.#value(entry, parse, expected, 'Write a number such as 0.5.')
  }

  #text(entry: Entry): string | null {
    return this.#value(entry, value => String(value) || null, 'a name', 'Write a name or a path.')
  }

  #optionalText(entry: Entry | undefined): string | null {
    return entry ? this.#text(entry) : null
  }

  #truth(entry: Entry | undefined): boolean | null {
    if (!entry) return null
    const value = this.#source.scalar(entry)
    return typeof value === 'boolean'
      ? value
      : this.#source.wrong(entry, 'true or false', 'Write true or false.')
  }

  #tags(entry: Entry | undefined): string[] {
    if (!entry) return []
    return (this.#source.list(entry) ?? [entry]).flatMap(item => this.#text(item) ?? [])
  }

  /** How many, numbered from 0, or a list of their ids. */
  #gpus(entry: Entry | undefined): string[] | null {
    if (!entry) return null
    const ids = this.#source.list(entry)
    if (ids) return ids.flatMap(item => this.#text(item) ?? [])
    const count = this.#count(entry, 0, 'a whole number of GPUs, or a list of their ids', MOST_GPUS)
    return count === null ? null : Array.from({ length: count }, (_, i) => String(i))
  }

  /** `0-19`, `0,2,4-7`, 3, or a list. */
  #cpuList(entry: Entry | undefined): number[] | null {
    if (!entry) return null
    const items = this.#source.list(entry) ?? [entry]
    const hint = 'Write CPUs as 0-19 or 0,2,4-7.'
    const parsed = items.map(item => this.#value(item, parseCpus, 'a list of CPUs', hint))
    if (parsed.includes(null)) return null
    return [...new Set(parsed.flatMap(cpus => cpus ?? []))].sort((a, b) => a - b)
  }
}

function parseCpus(value: number | string): number[] | null {
  const cpus: number[] = []
  for (const part of String(value).split(',')) {
    const match = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part)
    if (!match) return null
    const first = Number(match[1])
    const last = Number(match[2] ?? match[1])
    if (last < first || last - first > 65_535) return null
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu)
  }
  return cpus
}
