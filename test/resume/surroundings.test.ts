import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { declaredIn, isOfAllocation, languageOf, timeZoneOf } from '../../src/runtime/resume/surroundings.ts'
import { Program } from './folder.ts'

/** Variables of the environment for one run. */
async function inEnvironment<T>(env: Record<string, string | undefined>, body: () => Promise<T>): Promise<T> {
  const before = Object.keys(env).map(name => [name, process.env[name]] as const)
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  for (const [name, value] of Object.entries(env)) set(name, value)
  try {
    return await body()
  } finally {
    for (const [name, value] of before) set(name, value)
  }
}

const PLACES = `
  import { command, task, main, waitOn, waitOnFile, FILE_IN, FILE_OUT } from 'millrace'
  import { readFileSync } from 'node:fs'
  import { ran } from './ran.mjs'
  export const hour = command({ params: [FILE_OUT], stdout: 0 }, () => ['sh', '-c', 'echo hour >> ran.log; date -d @0 +%H'])
  export const read = task({ params: [FILE_IN] }, path => readFileSync(path, 'utf8').trim())
  export const number = task({}, () => { ran('number'); return (1234.5).toLocaleString() })
  export const clock = task({}, () => { ran('clock'); return new Date(0).getHours() })
  main(async () => {
    hour('hour.txt')
    console.log(await waitOn([read('hour.txt'), number(), clock()]))
  })
`

test('another language or time zone is not answered with results of the one before, and that is told', async () => {
  const program = new Program({ 'app.mjs': PLACES })
  const usual = { LC_ALL: 'en_US.UTF-8', TZ: 'UTC' }
  const run = (env: Record<string, string | undefined>, ...options: string[]) =>
    inEnvironment({ ...usual, ...env }, () => program.run('--resume', '--explain', ...options))
  assert.equal((await run({})).stdout, "[ '00', '1,234.5', 0 ]\n")
  assert.deepEqual((await run({})).ran, [])
  const east = await run({ TZ: 'Asia/Tokyo' })
  assert.equal(east.stdout, "[ '09', '1,234.5', 9 ]\n", east.stderr)
  assert.match(
    east.stderr,
    /hour: 0 reused, 1 ran; first: hour#\d+: what its code reads changed: the time zone \(TZ\)/,
  )
  const german = await run({ LC_ALL: 'de_DE.UTF-8' })
  assert.equal(german.stdout, "[ '00', '1.234,5', 0 ]\n", german.stderr)
  assert.match(german.stderr, /number: 0 reused.* what its code reads changed: the language \(LANG, LC_ALL\)/)
  assert.deepEqual((await run({})).ran, [], 'what was kept before is there again')
})

test('languages and time zones with several names are one', () => {
  assert.equal(languageOf({}), languageOf({ LANG: 'C', LC_ALL: '', LC_TIME: 'POSIX', LANGUAGE: 'de' }))
  assert.notEqual(languageOf({}), languageOf({ LANG: 'C.UTF-8' }))
  assert.equal(languageOf({ LC_ALL: 'en_US', LANG: 'de_DE', LC_TIME: 'C' }), languageOf({ LANG: 'en_US' }))
  assert.notEqual(languageOf({ LANG: 'de_DE' }), languageOf({ LANG: 'de_DE', LC_COLLATE: 'C' }))
  assert.notEqual(languageOf({ LANG: 'de_DE' }), languageOf({ LANG: 'de_DE', LANGUAGE: 'fr' }))
  assert.equal(timeZoneOf({ TZ: ':/usr/share/zoneinfo/Europe/Paris' }), timeZoneOf({ TZ: 'Europe/Paris' }))
  assert.equal(timeZoneOf({ TZ: '' }), timeZoneOf({}, '/nowhere'))
  const { folder } = new Program({})
  mkdirSync(`${folder}/zoneinfo/Asia`, { recursive: true })
  for (const [name, text] of [
    ['zoneinfo/Asia/Tokyo', 'tokyo'],
    ['copy', 'tokyo'],
    ['other', 'seoul'],
  ] as const)
    writeFileSync(`${folder}/${name}`, text)
  symlinkSync('zoneinfo/Asia/Tokyo', `${folder}/link`)
  assert.equal(timeZoneOf({}, `${folder}/link`), 'Asia/Tokyo')
  assert.notEqual(timeZoneOf({}, `${folder}/copy`), timeZoneOf({}, `${folder}/other`))
})

const ALLOCATION = (key: string): string => `
  import { command, task, main, waitOn, waitOnFile, FILE_OUT } from 'millrace'
  import { ran } from './ran.mjs'
  const env = { SLURM_JOB_ID: process.env.SLURM_JOB_ID ?? '', TMPDIR: process.env.TMPDIR ?? '' }
  export const word = command({ params: [FILE_OUT]${key} }, to => ['sh', '-c', 'echo word >> ran.log; cd "$SLURM_TMPDIR"; echo $SLURM_JOB_ID > "$0"', to])
  export const added = command({ params: [FILE_OUT], stdout: 0, env${key} }, () => ['sh', '-c', 'echo added >> ran.log; echo 1'])
  export const own = task({ params: [FILE_OUT]${key} }, async path => {
    ran('own')
    const { writeFileSync } = await import('node:fs')
    writeFileSync(path, process.env.SLURM_ARRAY_TASK_ID + ' of ' + process.env.SLURM_NTASKS)
  })
  main(async () => {
    for (const [one, name] of [[word, 'word.txt'], [added, 'added.txt'], [own, 'own.txt']]) {
      one(name)
      await waitOnFile(name)
    }
  })
`

test('a run goes on in another allocation: what only names that does not count, unless `key` does', async () => {
  const program = new Program({ 'app.mjs': ALLOCATION('') })
  const job = (id: string, more: Record<string, string> = {}) =>
    inEnvironment(
      {
        SLURM_JOB_ID: id,
        SLURM_TMPDIR: program.folder,
        TMPDIR: `/tmp/./${id}/..`,
        SLURM_ARRAY_TASK_ID: '1',
        SLURM_NTASKS: '4',
        ...more,
      },
      () => program.run('--resume', '--explain', '--nodes', 'local:1'),
    )
  assert.deepEqual((await job('7')).ran, ['added', 'own', 'word'])
  const next = await job('8')
  assert.deepEqual(next.ran, [], next.stderr)
  assert.deepEqual((await job('8', { SLURM_ARRAY_TASK_ID: '2' })).ran.length, 3, 'another task of the array')
  assert.equal(program.read('own.txt'), '2 of 4')
  assert.deepEqual((await job('8', { SLURM_NTASKS: '5' })).ran.length, 3, 'another size')
  writeFileSync(program.path('app.mjs'), ALLOCATION(', key: process.env.SLURM_JOB_ID'))
  assert.equal((await job('8')).ran.length, 3)
  assert.deepEqual((await job('8')).ran, [])
  assert.equal((await job('9')).ran.length, 3)
})

test('names of an allocation are told from sizes and settings', () => {
  for (const name of [
    'SLURM_JOB_ID',
    'SLURM_JOBID',
    'SLURM_JOB_NODELIST',
    'SLURMD_NODENAME',
    'SLURM_STEP_ID',
    'PWD',
    'TMPDIR',
    'PBS_JOBID',
  ])
    assert.ok(isOfAllocation(name), name)
  for (const name of [
    'SLURM_ARRAY_TASK_ID',
    'SLURM_NTASKS',
    'SLURM_CPUS_PER_TASK',
    'SLURM_JOB_NAME',
    'SLURM_PROCID',
    'HOME',
    'SIZE',
    'JOB_ID',
  ])
    assert.ok(!isOfAllocation(name), name)
  const added = { TMPDIR: '/tmp/7', SLURM_JOB_ID: '7', SIZE: '1' }
  assert.deepEqual(declaredIn(added, { TMPDIR: '/tmp/7', SLURM_JOB_ID: '8' }), {
    SLURM_JOB_ID: '7',
    SIZE: '1',
  })
})
