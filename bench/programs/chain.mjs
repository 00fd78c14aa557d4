// Each task takes the future of the one before: chain.mjs HOPS warm|cold
import { main, task } from 'millrace'
import { warmUp } from './warm-up.mjs'
import { profileStart, profileStop } from './profiling.mjs'

export const next = task({ name: 'next' }, x => x + 1)

const hops = Number(process.argv[2])

async function round(count) {
  let future = next(0)
  for (let i = 1; i < count; i++) future = next(future)
  const last = await future
  if (last !== count) throw new Error(`the chain gave ${last}`)
}

main(async () => {
  await round(warmUp(hops))
  await profileStart()
  const start = performance.now()
  await round(hops)
  const seconds = (performance.now() - start) / 1000
  await profileStop()
  console.log(JSON.stringify({ seconds }))
})
