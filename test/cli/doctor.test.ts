import assert from 'node:assert/strict'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  checkFolder,
  judgeCpus,
  judgeDisk,
  judgeFiles,
  judgeMemory,
  judgeNode,
  judgeSharedMemory,
} from '../../src/cli/doctor/doctor-checks.ts'
import { cpuLimit, memoryLimit } from '../../src/cli/doctor/doctor-limits.ts'
import { explain } from '../../src/cli/problem.ts'
import { jsonLines, makeFolder, millrace } from './folder.ts'

test('doctor looks at everything and leaves nothing behind', async () => {
  const folder = makeFolder({})
  const { code, stdout, stderr } = await millrace(folder, ['doctor'])
  assert.equal(stderr, '')
  assert.equal(code, 0)
  for (const check of [
    'node',
    'cpus',
    'memory',
    'typescript',
    'compiler',
    'processes',
    'shared mem',
    'folder',
    'disk',
    'open files',
  ]) {
    assert.match(stdout, new RegExp(`^(ok|warn)  +${check} `, 'm'))
  }
  assert.equal(existsSync(join(folder, '.millrace')), false)
  const json = jsonLines((await millrace(folder, ['doctor', '--json'])).stdout)
  assert.equal(json.find(({ check }) => check === 'typescript')?.['state'], 'ok')
})

const GIB = 2 ** 30
const limits = (count: string): string =>
  `Max processes   1  1  processes\nMax open files   ${count}   20000   files`
const judged: [string, { state: string; found: string; todo?: string }, string, RegExp][] = [
  ['an old Node', judgeNode('18.20.1'), 'fail', /20\.19/],
  ['a Node just too old', judgeNode('20.18.0'), 'fail', /20\.19/],
  ['a new Node', judgeNode('24.1.0'), 'ok', /24/],
  ['all CPUs', judgeCpus(8, null), 'ok', /8 CPUs/],
  ['fewer CPUs', judgeCpus(8, 2.5), 'warn', /2\.5 of them.*--cpus 2,/],
  ['less memory', judgeMemory(32 * GIB, 4 * GIB), 'warn', /4\.3 GB.*--memory 4294MB/],
  ['little shared memory', judgeSharedMemory(64 * 2 ** 20), 'warn', /shm-size/],
  ['a full disk', judgeDisk(2 ** 20), 'fail', /Make room/],
  ['a disk that fills', judgeDisk(GIB / 2), 'warn', /Make room/],
  ['few files', judgeFiles(limits('1024')), 'warn', /ulimit -n/],
  ['any number of files', judgeFiles(limits('unlimited')), 'ok', /unlimited/],
]
for (const [what, { state, found, todo }, wanted, said] of judged) {
  test(`${what}: ${wanted}`, () => {
    assert.equal(state, wanted)
    assert.match(`${found} ${todo ?? ''}`, said)
    assert.equal(todo === undefined, wanted === 'ok')
  })
}

test('the tightest limit of the groups above a process counts, old form or new', async () => {
  const reader = (files: Record<string, string>) => async (path: string) => files[path] ?? null
  const nested = reader({
    '/proc/self/cgroup': '0::/system.slice/job-7',
    '/sys/fs/cgroup/system.slice/cpu.max': '400000 100000',
    '/sys/fs/cgroup/system.slice/job-7/cpu.max': 'max 100000',
    '/sys/fs/cgroup/system.slice/memory.max': 'max',
    '/sys/fs/cgroup/system.slice/job-7/memory.max': '1073741824',
  })
  assert.equal(await cpuLimit(nested), 4)
  assert.equal(await memoryLimit(nested), GIB)
  const old = reader({
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '150000',
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712',
  })
  assert.equal(await cpuLimit(old), 1.5)
  assert.equal(await memoryLimit(old), null)
  assert.equal(await cpuLimit(reader({})), null)
})

test('a folder that cannot be written is a warning', { skip: process.getuid?.() === 0 }, async () => {
  const folder = makeFolder({})
  chmodSync(folder, 0o500)
  const { state } = await checkFolder(folder)
  chmodSync(folder, 0o700)
  assert.equal(state, 'warn')
})

test('a cache that cannot be written is not taken for a missing compiler', async () => {
  const folder = makeFolder({ file: '' })
  const { stdout } = await millrace(folder, ['doctor'], { XDG_CACHE_HOME: join(folder, 'file') })
  assert.match(stdout, /^warn +processes +.*cannot be written.*\n +Set XDG_CACHE_HOME to a folder/m)
})

test('where the system has no more of something, the user is not asked to report a fault of Millrace', () => {
  const text = explain(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }))
  assert.equal(
    text,
    'millrace: EMFILE: too many open files\n  Raise the limit of open files, for instance with ulimit -n 4096.\n',
  )
  assert.match(explain(new TypeError('x is undefined')), /fault of Millrace itself/)
})
