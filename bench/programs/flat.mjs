// Independent tasks that give back their argument: flat.mjs TASKS warm|cold barrier|waitOn|map
import { barrier, main, task, waitOn } from 'millrace'
import { warmUp } from './warm-up.mjs'
import { profileStart, profileStop } from './profiling.mjs'

export const echo = task({ name: 'echo' }, x => x)

const [count, how] = [Number(process.argv[2]), process.argv[4]]

async function round(tasks) {
  if (how === 'map') {
    const values = await echo.map(Array.from({ length: tasks }, (_, i) => i))
    if (values.at(-1) !== tasks - 1) throw new Error(`the last value is ${values.at(-1)}`)
    return
  }
  const futures = []
  for (let i = 0; i < tasks; i++) futures.push(echo(i))
  const last = how === 'waitOn' ? (await waitOn(futures)).at(-1) : (await barrier(), await futures.at(-1))
  if (last !== tasks - 1) throw new Error(`the last task gave ${last}`)
}

main(async () => {
  await round(warmUp(count))
  await profileStart()
  const start = performance.now()
  await round(count)
  const seconds = (performance.now() - start) / 1000
  await profileStop()
  console.log(JSON.stringify({ seconds }))
})
