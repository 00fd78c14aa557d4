import assert from 'node:assert/strict'
import { get } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunEvent } from '../../src/core/events.ts'
import { Running, makeFolder } from '../cli/folder.ts'

const PROGRAM = `
import { configure, main, task } from 'millrace'
import { existsSync } from 'node:fs'
export const one = task({ name: 'one' }, x => x)
const observe = event => {
  if (event.type === 'measured') console.log(JSON.stringify(event))
}
configure({ observers: [observe] })
main(async () => {
  await one(1)
  while (!existsSync('go')) await new Promise(done => setTimeout(done, 20))
})
`

test('all nodes are measured while a page is open, and not before', async () => {
  const home = makeFolder({ 'app.mjs': PROGRAM })
  const args = ['run', 'app.mjs', '--nodes', 'local:2', '--dashboard', '--progress', 'plain']
  const running = new Running(home, args)
  await running.printed('stderr', 'dashboard  ')
  assert.equal(running.stdout, '')
  const url = /http:\S+/.exec(running.stderr)?.[0] ?? ''
  const request = get(`${url}events?sections=nodes`)
  request.on('error', () => undefined)
  await running.printed('stdout', '"node":0')
  await running.printed('stdout', '"node":1')
  request.destroy()
  writeFileSync(join(home, 'go'), '')
  assert.equal((await running.ended).code, 0, running.stderr)
  for (const line of running.stdout.trim().split('\n')) {
    const event = JSON.parse(line) as Extract<RunEvent, { type: 'measured' }>
    assert.ok(event.rss > 10e6 && event.rss < event.memory, line)
    assert.ok(event.available >= 0 && event.available <= event.memory, line)
  }
})
