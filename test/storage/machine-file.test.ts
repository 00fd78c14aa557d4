import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MillraceError } from '../../src/core/errors.ts'
import { loadMachine, parseMachine } from '../../src/storage/machine-file.ts'

const CLUSTER = `
nodes:
  - name: n1
    cpus: 48
    memory: 370GB
    ioExecutors: 225
    storage:
      - { name: nvme, path: /nvme, bandwidth: 6026MB/s, capacity: 1TB, cpus: 0-19 }
      - { name: ssd,  path: /scratch, bandwidth: 2743MB/s, capacity: 1TB }
      - { name: pfs,  path: /work, bandwidth: 900MB/s, shared: true }
`

test('a node with its devices is read with units', () => {
  const [node] = parseMachine(CLUSTER, 'm.yaml').nodes
  assert.equal(node?.name, 'n1')
  assert.equal(node.cpus, 48)
  assert.equal(node.memory, 370e9)
  assert.equal(node.ioExecutors, 225)
  const [nvme, ssd, pfs] = node.storage
  assert.equal(nvme?.read, 6026e6)
  assert.equal(nvme.write, 6026e6)
  assert.equal(nvme.capacity, 1e12)
  assert.deepEqual(nvme.cpus, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19])
  assert.equal(ssd?.cpus, null)
  assert.equal(ssd.shared, false)
  assert.deepEqual([pfs?.shared, pfs?.capacity], [true, null])
})

test('JSON is read as YAML is', () => {
  const nodes = [
    {
      name: 'n1',
      cpus: 2,
      storage: [{ name: 'd', path: '/d', readBandwidth: 100, writeBandwidth: '50MB/s' }],
    },
  ]
  const [node] = parseMachine(JSON.stringify({ nodes }, null, 2), 'm.json').nodes
  assert.deepEqual([node?.storage[0]?.read, node?.storage[0]?.write], [100e6, 50e6])
})

test('many nodes are written by a count or by a range in the name', () => {
  const named = (text: string): string[] => parseMachine(text, 'm').nodes.map(({ name }) => name)
  assert.deepEqual(named('nodes: { name: n, count: 3, cpus: 4 }'), ['n1', 'n2', 'n3'])
  assert.deepEqual(named('nodes: [{ name: "a[08-11]x" }, { name: b }]'), [
    'a08x',
    'a09x',
    'a10x',
    'a11x',
    'b',
  ])
  assert.equal(named('nodes: { count: 12 }').length, 12)
  assert.deepEqual(named('nodes: 2 x { name: n, cpus: 4 }'), ['n1', 'n2'])
  assert.deepEqual(named('nodes:\n  - 2 x {name: a}\n  - 1  x  {name: b,\n    cpus: 2}\n  - {name: c}'), [
    'a1',
    'a2',
    'b1',
    'c',
  ])
  assert.deepEqual(named('nodes: [2 x {name: a}, {name: "3 x {"}]'), ['a1', 'a2', '3 x {'])
})

test('storage beside nodes is a shared device of all of them, unless a node says otherwise', () => {
  const text = `
storage: [{ name: pfs, path: /work, bandwidth: 900 }]
nodes: [{ name: a, count: 2 }, { name: b, storage: [{ name: own, path: /b }] }]`
  const { nodes } = parseMachine(text, 'm')
  assert.deepEqual(
    nodes.map(({ storage }) => storage.map(({ name, shared }) => [name, shared])),
    [
      [['pfs', true]],
      [['pfs', true]],
      [
        ['own', false],
        ['pfs', true],
      ],
    ],
  )
})

test('an alias stands for what its anchor names', () => {
  const text = 'nodes:\n  - { name: a, storage: &s [{ name: d, path: /d }] }\n  - { name: b, storage: *s }'
  assert.deepEqual(parseMachine(text, 'm').nodes[1]?.storage[0]?.name, 'd')
})

type Row = [title: string, text: string, place: string, message: RegExp]

const MISTAKES: Row[] = [
  [
    'a mistyped key',
    'nodes:\n  - name: n1\n    memmory: 3GB',
    '3:5',
    /no key 'memmory'; did you mean 'memory'/,
  ],
  ['a key of a device', 'nodes:\n  - storage:\n      - { name: d, bandwith: 3 }', '3:20', /'bandwidth'/],
  ['a size with a unit of rates', 'nodes: [{ memory: 3MB/s }]', '1:19', /nodes\[0\]\.memory is '3MB\/s'/],
  [
    'a rate without "per second"',
    'nodes:\n- storage: [{ name: d, bandwidth: 3GB }]',
    '2:35',
    /not a bandwidth/,
  ],
  [
    'a device that is not a map',
    'nodes: [{ storage: [/nvme] }]',
    '1:21',
    /storage\[0\] is '\/nvme', not a list/,
  ],
  ['a device without name', 'nodes: [{ storage: [{ path: /a }] }]', '1:21', /has no name/],
  [
    'what else is wrong with it',
    'nodes: [{ storage: [{ capacity: 1TB/s }] }]',
    '1:21',
    /has no name[^]*1:33: .*not a size/,
  ],
  ['a second document', 'nodes: [{ cpus: 1 }]\n---\n', '2:1', /a second document begins here/],
  ['two devices of one name', 'nodes: [{ storage: [{ name: a }, { name: a }] }]', '1:34', /another device/],
  ['CPUs that are no range', 'nodes: [{ storage: [{ name: a, cpus: 4-1 }] }]', '1:38', /list of CPUs/],
  ['no nodes', 'storage: []', '1:1', /no key 'nodes'/],
  ['an empty list', 'nodes: []', '1:8', /nodes is an empty list/],
  ['an empty file', '', '1:1', /the file is empty/],
  [
    'a truth value that is not one',
    'nodes: [{ storage: [{ name: a, shared: maybe }] }]',
    '1:40',
    /true or false/,
  ],
  ['half a CPU', 'nodes: [{ cpus: 0.5 }]', '1:17', /whole number of CPUs/],
  ['two nodes of one name', 'nodes: [{ name: a }, { name: a }]', '1:8', /two nodes have the name 'a'/],
  ['a range that goes down', 'nodes: [{ name: "n[9-2]" }]', '1:17', /goes up/],
  [
    'a number of nodes that is too large',
    'nodes: 1000000 x {cpus: 1}',
    '1:18',
    /is 1000000, not 1 to 100000/,
  ],
  ['a number in front and a count', 'nodes: 12 x {count: 3}', '1:21', /a number in front of it and a count/],
  ['what comes after a number', 'nodes: 12 x {name: n, cpu: 3}', '1:23', /no key 'cpu'/],
  ['a count that contradicts the range', 'nodes: [{ name: "n[1-3]", count: 4 }]', '1:34', /names 3 nodes/],
  [
    'a shared device described in two ways',
    'nodes: [{ name: a, storage: [{ name: p, shared: true, capacity: 1GB }] }, { name: b, storage: [{ name: p, shared: true }] }]',
    '1:8',
    /described in two ways/,
  ],
  ['broken syntax', 'nodes: [{ name: a', '1:18', /flow/i],
]

for (const [title, text, place, message] of MISTAKES) {
  test(`${title} is shown in its place`, () => {
    assert.throws(
      () => parseMachine(text, 'dir/m.yaml'),
      (error: unknown) => {
        assert.ok(error instanceof MillraceError)
        assert.equal(error.code, 'MR_MACHINE')
        assert.ok(error.shortMessage.startsWith(`dir/m.yaml:${place}: `), error.shortMessage)
        assert.match(error.message, message)
        return true
      },
    )
  })
}

test('all mistakes of a file are shown at once, in its order', () => {
  const text = 'nodes:\n  - cpus: x\n    memory: y\n  - name: b\n    tgas: z'
  assert.throws(
    () => parseMachine(text, 'm'),
    ({ shortMessage }: MillraceError) =>
      JSON.stringify(shortMessage.split('\n').map(line => line.slice(0, 6))) ===
      JSON.stringify(['m:2:11', 'm:3:13', 'm:5:5:']),
  )
})

test('a file that is missing is an error that says how it was to be given', () => {
  assert.throws(
    () => loadMachine('/nowhere/m.yaml'),
    /m\.yaml cannot be read: it does not exist[^]*--machine/,
  )
})

test('whatever is in the file, it is read or refused with a place', () => {
  const piece = fc.constantFrom(
    'nodes',
    'storage',
    'name',
    ':',
    ' ',
    '\n',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ',',
    '3GB',
    '*a',
    '&a',
    '"',
    '#',
  )
  const text = fc.oneof(
    fc.string(),
    fc.array(piece, { maxLength: 30 }).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(text, given => {
      try {
        assert.ok(parseMachine(given, 'm').nodes.length > 0)
      } catch (error) {
        assert.ok(error instanceof MillraceError, String(error))
        assert.match(error.shortMessage, /^m:\d+:\d+: /)
      }
    }),
    { numRuns: 500 },
  )
})
