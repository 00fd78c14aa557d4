// A smallest program, which tells when it got how far; milliseconds since its process began.
const node = performance.now()
const { main, task } = await import('millrace')
const imported = performance.now()

/** When it begins, on the clock of the system. */
export const first = task({ name: 'first' }, () => Number(process.hrtime.bigint()) / 1e6)

main(async () => {
  const called = performance.now()
  const begunOnSystem = await first()
  const result = performance.now()
  const toHere = Number(process.hrtime.bigint()) / 1e6 - performance.now()
  console.log(JSON.stringify({ node, imported, called, begun: begunOnSystem - toHere, result }))
})
