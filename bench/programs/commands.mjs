// N times /bin/true as command tasks, with a heap of the given size (MB) in the coordinator.
import { writeSync } from 'node:fs'
import { barrier, command, main } from 'millrace'

const tasks = Number(process.argv[2])
const megabytes = Number(process.argv[3] ?? 0)

const nothing = command({ name: 'nothing' }, () => ['/bin/true'])

// The bench measures from here how long it takes to give the heap back.
if (megabytes > 0) process.on('exit', () => writeSync(1, '{"ended":true}\n'))

main(async () => {
  const begin = performance.now()
  const heap = []
  for (let i = 0; i < megabytes; i++) heap.push(Buffer.alloc(1 << 20, 1))
  const start = performance.now()
  for (let i = 0; i < tasks; i++) nothing()
  await barrier()
  const seconds = (performance.now() - start) / 1000
  console.log(JSON.stringify({ seconds, filling: (start - begin) / 1000, heap: heap.length }))
})
