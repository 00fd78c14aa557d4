import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandLine } from '../../src/cluster/launch/orders.ts'
import { bin } from '../cli/folder.ts'
import { folder, start } from './program.ts'

/** Machines that a command of the user's starts agents on, and that see neither Millrace nor, some of them, the working folder. */
const root = join(import.meta.dirname, '..', '..')
const isRoot = spawnSync('unshare', ['-m', 'true']).status === 0
const skip = isRoot ? false : 'mounts cannot be made here'
const own = join(folder, 'own')
mkdirSync(join(own, 'node_modules'), { recursive: true })
symlinkSync(root, join(own, 'node_modules', 'millrace'))
writeFileSync(
  join(own, 'app.mjs'),
  `
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { task, main, barrier, waitOn, FILE_IN, FILE_OUT } from 'millrace'
export const write = task({ name: 'write', params: [FILE_IN, FILE_OUT] }, (from, to) => {
  writeFileSync(to, readFileSync(from, 'utf8') + import.meta.url)
})
export const words = task({ name: 'words' }, () => readdirSync('/proc').filter(name => /^[0-9]+$/.test(name)).map(name => {
  try { return readFileSync('/proc/' + name + '/cmdline', 'utf8') } catch { return '' }
}).filter(text => /token"|MILLRACE_TOKEN/.test(text) && !text.includes('app.mjs')))
main(async () => {
  writeFileSync('given', 'given ')
  for (let i = 0; i < 4; i++) write('given', 'w' + i)
  const seen = await waitOn(words())
  await barrier()
  console.log(JSON.stringify({ seen, files: [0, 1, 2, 3].map(i => readFileSync('w' + i, 'utf8')) }))
})
`,
)

/** A machine of its own: `hidden` is empty there. */
function machine(name: string, hidden: readonly string[], place: string): string {
  const login = join(folder, `${name}.sh`)
  const mounts = hidden.map(path => `mount -t tmpfs none '${path}' && `).join('')
  writeFileSync(login, `${mounts}exec "$@"`)
  const file = join(folder, `${name}.yaml`)
  const command = `unshare -m sh ${login} ${place}`
  writeFileSync(file, `nodes:\n  - { name: m, count: 2, cpus: 1, launch: '${command}' }\n`)
  return file
}

for (const [place, hidden, more] of [
  // The orders are in the working folder, so it is seen; the program is to be sent.
  ['{agent}', [root], { MILLRACE_NODE_FOLDER: join(folder, 'apart') }],
  ['{stdin}', [root, own], {}],
] as const) {
  test(
    `a command with ${place} starts agents where Millrace is not installed`,
    { skip, timeout: 120_000 },
    async () => {
      const name = place.slice(1, -1)
      const cache = join(folder, `cache-${name}`)
      const words = [process.execPath, bin, 'run', 'app.mjs', '--nodes', machine(name, hidden, place)]
      const { code, text, said } = await start(words, { XDG_CACHE_HOME: cache, ...more }, own).ended
      assert.equal(code, 0, said)
      const { seen, files } = JSON.parse(text) as { seen: string[]; files: string[] }
      assert.deepEqual(seen, [], 'no secret is among words that others can see')
      for (const file of files) assert.ok(/^given file:.*\/programs\//.test(file), file)
      assert.equal(readdirSync(join(cache, 'millrace', 'packages')).length, 1)
      const left = existsSync(join(own, '.millrace')) ? readdirSync(join(own, '.millrace')) : []
      assert.deepEqual(
        left.filter(one => one.startsWith('agents-')),
        [],
      )
    },
  )
}

test('a machine without Node is named, with what to do', { skip, timeout: 60_000 }, async () => {
  const login = join(folder, 'empty.sh')
  const path = join(folder, 'path')
  mkdirSync(path)
  symlinkSync(
    spawnSync('sh', ['-c', 'command -v hostname'], { encoding: 'utf8' }).stdout.trim(),
    join(path, 'hostname'),
  )
  writeFileSync(login, `mount --bind /dev/null '${process.execPath}' && PATH=${path} && exec /bin/sh -s`)
  const file = join(folder, 'empty.yaml')
  writeFileSync(file, `nodes:\n  - { name: empty, launch: 'unshare -m sh ${login} {stdin}' }\n`)
  const { code, said } = await start([process.execPath, bin, 'run', 'app.mjs', '--nodes', file], {}, own)
    .ended
  assert.equal(code, 2)
  assert.match(said, /the agent of node empty did not start: .*there is no Node on/)
  assert.match(said, /MR_NODE_UNREACHABLE/)
})

test('what a command is made of', () => {
  const file = (): string => '/a b/1.sh'
  assert.equal(commandLine('qrsh -l h={name}', 'x', file), "qrsh -l h=x sh '/a b/1.sh'")
  assert.equal(commandLine('q {agent} -n {name}', "it's", file), "q sh '/a b/1.sh' -n 'it'\\''s'")
  assert.equal(commandLine('docker run -i {name} {stdin}', 'n', file), 'docker run -i n sh -s')
})
