import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { without } from '../node/mpi-program.ts'
import { RANKS_SAID, lastSaid, mpiVariables, rankArguments } from './mpi-program.ts'
import { folder, isAlive, start, until } from './program.ts'

// Two agents that call over the network, as on other machines.
const nodes = join(folder, 'two.yaml')
writeFileSync(
  nodes,
  "nodes:\n  - { name: a, cpus: 2, launch: '{stdin}' }\n  - { name: b, cpus: 2, launch: '{stdin}' }\n",
)
const inMemory = (): string[] => readdirSync('/dev/shm').filter(name => name.startsWith('millrace-mpi'))

for (const mpi of ['openmpi', 'mpich']) {
  test(
    `ranks of a task are on two nodes: results are those of one machine, with ${mpi}`,
    { skip: without(mpi), timeout: 120_000 },
    async () => {
      rmSync(join(folder, 'died'), { force: true })
      const before = inMemory()
      const words = [process.execPath, ...rankArguments(nodes, 'all')]
      const { code, text, said } = await start(words, mpiVariables(mpi)).ended
      assert.equal(code, 0, said)
      const { clashed, waits, ...rest } = lastSaid(text)
      assert.deepEqual(rest, { ...RANKS_SAID, library: mpi })
      assert.match(String(clashed), /ranks on two nodes.*different values to element 3 of an array of 5/)
      assert.match(String(waits), /rank 2 ended while others wait: rank 0 is in barrier/)
      await until(() => inMemory().every(name => before.includes(name)))
    },
  )
}

const begun = join(folder, 'begun')
/** Processes of the ranks that have begun since the file was removed. */
const ranks = (): number[] => {
  const lines = existsSync(begun) ? readFileSync(begun, 'utf8').trim().split('\n') : []
  return lines.filter(Boolean).map(line => Number(line.split(' ')[0]))
}

test(
  'an agent that is killed takes its ranks with it, and the task begins again from its inputs',
  { skip: without('openmpi'), timeout: 120_000 },
  async () => {
    for (const path of [begun, join(folder, 'go')]) rmSync(path, { force: true })
    const three = join(folder, 'three.yaml')
    writeFileSync(three, `${readFileSync(nodes, 'utf8')}  - { name: c, cpus: 2, launch: '{stdin}' }\n`)
    const before = inMemory()
    const run = start([process.execPath, ...rankArguments(three, 'slow')], mpiVariables('openmpi'))
    await until(() => ranks().length === 4)
    const first = ranks()
    process.kill(agentOf(first[0] as number), 'SIGKILL')
    await until(() => ranks().length === 8)
    await until(() => !first.some(isAlive))
    appendFileSync(join(folder, 'go'), '')
    const { code, text, said } = await run.ended
    assert.equal(code, 0, said)
    assert.equal(text.trim(), '1,1,1,1')
    await until(() => !ranks().some(isAlive))
    await until(() => inMemory().every(name => before.includes(name)))
  },
)

/** The agent among the parents of a process. */
function agentOf(rank: number): number {
  for (let pid = rank; pid > 1;) {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    if (words.includes('agent')) return pid
    pid = Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  }
  throw new Error(`process ${rank} has no agent`)
}
