import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Running, makeFolder, millrace } from './folder.ts'
import { waiting } from './programs.ts'
import { isAlive } from '../processes.ts'

test('Ctrl-C lets running tasks end, starts nothing new and says how to go on', async () => {
  const folder = makeFolder({ 'app.mjs': waiting })
  const run = new Running(folder, ['run', 'app.mjs', '--cpus', '2', '--', 'a b'])
  await Promise.all([run.printed('stdout', 'began 1.'), run.printed('stdout', 'began 2.')])
  run.process.kill('SIGINT')
  await run.printed('stderr', 'once more kills them')
  writeFileSync(join(folder, 'go'), '')
  const { code, stdout, stderr } = await run.ended
  assert.equal(code, 130)
  assert.match(stdout, /ended 1\./)
  assert.match(stdout, /ended 2\./)
  assert.doesNotMatch(stdout, /began [34]/)
  assert.match(stderr, /to go on, start it again: millrace run app\.mjs --cpus 2 --resume -- 'a b'\n/)
  assert.match(stderr, /interrupted \S+ after [^]*2 ok, 2 cancelled, of 4/)
  const listed = await millrace(folder, ['runs'])
  assert.match(listed.stdout, /interrupted/)
})

test('a second Ctrl-C kills threads and the programs that tasks started', async () => {
  const folder = makeFolder({
    'app.mjs': `${waiting}
      import { command } from 'millrace'
      export const sleep = command({ name: 'sleep' }, () => ['sh', '-c', 'echo $$ > pid; exec sleep 1000'])`
      .replace('for (const x', "sleep(); const { readFileSync } = await import('node:fs'); for (const x")
      .replace(
        'await barrier()',
        `
        while (!existsSync('pid') || readFileSync('pid', 'utf8') === '') await new Promise(r => setTimeout(r, 20))
        console.log('sleeper ' + readFileSync('pid', 'utf8').trim() + '.')
        await barrier()`,
      ),
  })
  const run = new Running(folder, ['run', 'app.mjs', '--cpus', '2'])
  await Promise.all([run.printed('stdout', 'sleeper '), run.printed('stdout', 'began 1.')])
  run.process.kill('SIGINT')
  await run.printed('stderr', 'once more kills them')
  run.process.kill('SIGINT')
  const { code, stdout, stderr } = await run.ended
  assert.equal(code, 130)
  assert.match(stderr, /running tasks are killed/)
  assert.doesNotMatch(stdout, /ended/)
  const pid = Number(/sleeper (\d+)/.exec(stdout)?.[1])
  assert.ok(pid > 1)
  while (isAlive(pid)) await new Promise(resolve => setTimeout(resolve, 20))
})

test('a second Ctrl-C also ends a program that calls the same tasks again, whatever it is told', async () => {
  for (const wait of ['barrier()', 'waitOn(wait(9))', 'group("g", () => { wait(9) })']) {
    const folder = makeFolder({
      'app.mjs': waiting
        .replace('barrier }', 'barrier, group, waitOn }')
        .replace(
          'await barrier()',
          `for (let i = 0; ; i++) await (async () => { wait(i); await ${wait} })().catch(() => {})`,
        ),
    })
    const run = new Running(folder, ['run', 'app.mjs', '--cpus', '2'])
    await run.printed('stdout', 'began 2.')
    run.process.kill('SIGINT')
    await run.printed('stderr', 'once more kills them')
    writeFileSync(join(folder, 'go'), '')
    await run.printed('stdout', 'ended 2.')
    run.process.kill('SIGINT')
    const { code, stderr } = await run.ended
    assert.equal(code, 130, wait)
    assert.match(stderr, /running tasks are killed/)
  }
})

test('after Ctrl-C neither main nor a running task goes on as if all that it called had been done', async () => {
  const folder = makeFolder({
    'app.mjs':
      waiting
        .replace('main, barrier }', 'main, barrier, FILE_OUT }')
        .replace('[1, 2, 3, 4]) wait(x)', '[1]) wait(x); outer("all.txt")')
        .replace('await barrier()', 'await barrier(); console.log("all is done")') +
      `
      import { writeFileSync } from 'node:fs'
      export const outer = task({ name: 'outer', params: [FILE_OUT] }, async path => {
        console.log('began outer.')
        while (!existsSync('closed')) await new Promise(resolve => setTimeout(resolve, 20))
        wait(7)
        writeFileSync(path, 'with what wait has done')
      })`,
  })
  const run = new Running(folder, ['run', 'app.mjs', '--cpus', '2'])
  await Promise.all([run.printed('stdout', 'began 1.'), run.printed('stdout', 'began outer.')])
  run.process.kill('SIGINT')
  await run.printed('stderr', 'once more kills them')
  writeFileSync(join(folder, 'go'), '')
  writeFileSync(join(folder, 'closed'), '')
  const { code, stdout, stderr } = await run.ended
  assert.equal(code, 130)
  assert.doesNotMatch(stdout, /all is done/)
  assert.match(stderr, /wait#3 was cancelled: the run was interrupted/)
  assert.equal(existsSync(join(folder, 'all.txt')), false)
})
