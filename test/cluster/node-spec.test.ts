import assert from 'node:assert/strict'
import test from 'node:test'
import { cpusPerNode } from '../../src/cluster/launch/allocation.ts'
import { parseNodes } from '../../src/cluster/launch/node-spec.ts'

const parse = (text: string) =>
  parseNodes(text, () => [
    { name: 'n1', cpus: null },
    { name: 'n2', cpus: 4 },
  ])

test('the forms of --nodes', () => {
  assert.deepEqual(parse('local:2'), [
    { by: 'local', name: 'local1', cpus: null },
    { by: 'local', name: 'local2', cpus: null },
  ])
  assert.deepEqual(parse('local:1x8'), [{ by: 'local', name: 'local1', cpus: 8 }])
  assert.deepEqual(parse('ssh:me@h1,h2:8,h2'), [
    { by: 'ssh', name: 'h1', host: 'me@h1', cpus: null },
    { by: 'ssh', name: 'h2', host: 'me@h2', cpus: 8 },
    { by: 'ssh', name: 'h2#2', host: 'me@h2', cpus: null },
  ])
  assert.deepEqual(parse('slurm'), [
    { by: 'slurm', name: 'n1', cpus: null },
    { by: 'slurm', name: 'n2', cpus: 4 },
  ])
})

test('what cannot be meant is refused with a code', () => {
  const bad = [
    '',
    'local',
    'local:0',
    'local:x',
    'local:2x0',
    'local:999',
    'ssh:',
    'ssh:a b',
    'ssh:-oProxyCommand=x',
    'ssh:h:0',
    'slurm:3',
    'lokal:2',
  ]
  for (const text of bad) assert.throws(() => parse(text), { code: 'MR_NODES' }, text)
  assert.throws(() => parse('lokal:2'), /did you mean local/)
})

test('how Slurm writes the CPUs of an allocation', () => {
  assert.deepEqual(cpusPerNode('2'), [2])
  assert.deepEqual(cpusPerNode('8(x2),4,16(x3)'), [8, 8, 4, 16, 16, 16])
  assert.deepEqual(cpusPerNode(''), [])
})
