import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import { until } from './embedded.ts'
import { Program } from './program.ts'

/** The processes that help the coordinator are killed under it. */

const FIFTY = `
import { FILE_OUT, IN, command, main, barrier } from 'millrace'
import { existsSync, writeFileSync } from 'node:fs'
export const write = command({ params: [IN, FILE_OUT] }, (n: number, out: string) =>
  ['sh', '-c', 'echo $PPID > spawner; echo "$0" > "$1"; while [ ! -e go ]; do sleep 0.01; done', String(n), out])
main(async () => {
  for (let i = 0; i < 50; i++) write(i, 'out/' + i)
  await barrier()
  console.log('all')
})
`

test('when the process that starts programs is killed, another takes over and all are run', async () => {
  const program = new Program({ 'app.ts': FIFTY })
  try {
    const running = program.run('app.ts')
    const path = program.path('spawner')
    await until(() => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n'), 'a program')
    process.kill(Number(readFileSync(path, 'utf8')), 'SIGKILL')
    writeFileSync(program.path('go'), '')
    const { code, out, err } = await running
    assert.equal(code, 0, err)
    assert.equal(out, 'all\n')
    for (let i = 0; i < 50; i++) assert.equal(readFileSync(program.path(`out/${i}`), 'utf8'), `${i}\n`)
  } finally {
    program.remove()
  }
})

const MURDER = `
import { command, main, barrier } from 'millrace'
export const murder = command({}, () => ['sh', '-c', 'kill -9 $PPID; sleep 60'])
main(async () => {
  murder()
  await barrier()
})
`

test('a program that kills the process that started it fails, and says so', async () => {
  const program = new Program({ 'app.ts': MURDER })
  try {
    const { code, err } = await program.run('app.ts')
    assert.equal(code, 1)
    assert.match(err, /the process that starts programs has ended, and this one with it/)
  } finally {
    program.remove()
  }
})

/** Processes come and go between two looks. */
const tell = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const guardOf = (coordinator: number): number => {
  const children = tell(`/proc/${coordinator}/task/${coordinator}/children`).trim().split(' ')
  return Number(children.find(pid => tell(`/proc/${pid}/cmdline`).includes('MILLRACE_RUN=')) ?? 0)
}

test('when the watchdog is killed, another one cleans up after a coordinator that is killed too', async () => {
  const program = new Program({ 'app.ts': FIFTY })
  program.start('app.ts')
  await until(() => existsSync(program.path('spawner')), 'a program')
  const { coordinator } = program
  await until(() => guardOf(coordinator) !== 0, 'a watchdog')
  const watchdog = guardOf(coordinator)
  process.kill(watchdog, 'SIGKILL')
  await until(() => ![0, watchdog].includes(guardOf(coordinator)), 'another watchdog')
  process.kill(coordinator, 'SIGKILL')
  await program.end()
  await program.leavesNothing()
})
