import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { bin } from '../cli/folder.ts'
import { folder, isAlive, start, until } from './program.ts'

/** Three machines with a network of their own: namespaces, links of 200 Mbit/s by tc, cuts by nft. */
const root = join(import.meta.dirname, '..', '..')
const works = (program: string, ...words: string[]): boolean => spawnSync(program, words).status === 0
const names = [1, 2, 3].map(i => `mr${process.pid}n${i}`)
const skip = !works('ip', '-V')
  ? 'iproute2 is not installed here'
  : !works('nft', '--version')
    ? 'nftables is not installed here'
    : works('unshare', '-n', 'true')
      ? false
      : 'only root can make network namespaces'

const run = (line: string): void => void execFileSync('sh', ['-ec', line], { stdio: 'pipe' })
const net = `10.${128 + (process.pid % 100)}.${Math.floor(process.pid / 100) % 250}`

before(() => {
  if (skip !== false) return
  for (const [i, name] of names.entries()) {
    const [here, there] = [`${net}.${4 * i + 1}`, `${net}.${4 * i + 2}`]
    run(`
      ip netns add ${name}
      ip link add ${name} type veth peer name eth0 netns ${name}
      ip addr add ${here}/30 dev ${name} && ip link set ${name} up
      ip -n ${name} addr add ${there}/30 dev eth0 && ip -n ${name} link set eth0 up && ip -n ${name} link set lo up
      tc qdisc add dev ${name} root tbf rate 200mbit burst 256kb latency 50ms
      ip netns exec ${name} tc qdisc add dev eth0 root tbf rate 200mbit burst 256kb latency 50ms
      ip netns exec ${name} nft 'add table inet f; add chain inet f i { type filter hook input priority 0; }; add chain inet f o { type filter hook output priority 0; }'
    `)
  }
})

after(() => {
  if (skip !== false) return
  for (const name of names) spawnSync('ip', ['netns', 'del', name])
})

/** Both ways, without a word to either side. */
const cut = (name: string): void =>
  run(`ip netns exec ${name} nft 'add rule inet f i iif eth0 drop; add rule inet f o oif eth0 drop'`)
const mend = (name: string): void =>
  run(`ip netns exec ${name} nft 'flush chain inet f i; flush chain inet f o'`)

const program = join(folder, 'net.mjs')
writeFileSync(
  program,
  `
import { appendFileSync } from 'node:fs'
import { task, main, waitOn } from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}
const [log, count] = process.argv.slice(2)
const spin = ms => { const end = performance.now() + ms; while (performance.now() < end); }
export const work = task({ name: 'work' }, (i, array) => {
  appendFileSync(log, process.pid + '\\n')
  spin(150)
  return new Float64Array(20_000).fill(array[0] + i)
})
main(async () => {
  let array = new Float64Array([0])
  let sum = 0
  for (let round = 0; round < Number(count); round++) {
    const all = await waitOn(Array.from({ length: 9 }, (_, i) => work(i, array)))
    for (const one of all) sum += one[19_999]
    array = all[8]
  }
  console.log(sum)
})
`,
)

/** What the program prints after so many rounds. */
const expected = (rounds: number): number => {
  let [first, sum] = [0, 0]
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 9; i++) sum += first + i
    first += 8
  }
  return sum
}

function begin(
  rounds: number,
  environment: NodeJS.ProcessEnv,
): { run: ReturnType<typeof start>; log: string } {
  const at = join(folder, `net${rounds}`)
  mkdirSync(at)
  const file = join(at, 'nodes.yaml')
  const lines = names.map(name => `  - { name: ${name}, cpus: 1, launch: 'ip netns exec {name} {stdin}' }`)
  writeFileSync(file, `nodes:\n${lines.join('\n')}\n`)
  const log = join(at, 'log')
  writeFileSync(log, '')
  const words = [
    'run',
    program,
    '--nodes',
    file,
    '--no-journal',
    '--progress',
    'plain',
    '--',
    log,
    String(rounds),
  ]
  return { run: start([process.execPath, bin, ...words], environment, at), log }
}

const workersIn = (log: string): number[] => [
  ...new Set(readFileSync(log, 'utf8').split('\n').filter(Boolean).map(Number)),
]

/** The agent in a namespace: which of them has this process is known by its network. */
const namespaceOf = (pid: number): string =>
  execFileSync('ip', ['netns', 'identify', String(pid)], { encoding: 'utf8' }).trim()

const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))

test(
  'no false death: all CPUs busy, a stop of 4 s and a cut of 3 s',
  { skip, timeout: 180_000 },
  async () => {
    const busy = Array.from({ length: 2 * cpus().length }, () =>
      spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
    )
    try {
      const { run: one, log } = begin(14, {})
      await until(() => workersIn(log).length === 3)
      const [stopped = 0, other = 0] = workersIn(log)
      process.kill(stopped, 'SIGSTOP')
      cut(namespaceOf(other))
      await pause(3000)
      mend(namespaceOf(other))
      await pause(1000)
      process.kill(stopped, 'SIGCONT')
      const { code, text, said } = await one.ended
      assert.equal(code, 0, said)
      assert.equal(Number(text), expected(14))
      assert.doesNotMatch(said, /was lost/)
    } finally {
      for (const child of busy) child.kill('SIGKILL')
    }
  },
)

test('a node that is cut off is given up, and has ended its work', { skip, timeout: 180_000 }, async () => {
  const { run: one, log } = begin(30, { MILLRACE_NODE_SILENCE: '4s' })
  await until(() => workersIn(log).length === 3)
  const victim = workersIn(log)[0] ?? 0
  const name = namespaceOf(victim)
  cut(name)
  // It ends by itself, while nothing can reach it.
  await until(() => !isAlive(victim))
  const { code, text, said } = await one.ended
  mend(name)
  assert.equal(code, 0, said)
  assert.equal(Number(text), expected(30))
  assert.match(said, new RegExp(`node ${name} was lost`))
  await until(() => !workersIn(log).some(isAlive))
  assert.deepEqual(readdirSync(join(folder, 'tmp')), [])
})
