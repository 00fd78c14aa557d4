import assert from 'node:assert/strict'

type Event = Record<string, unknown>

/** Goes through the events of a run: at no instant may tasks hold more of a device than it has. */
export function checkDevices(events: readonly Event[], limits: readonly number[]): void {
  const kinds = new Map<unknown, string>()
  const kindOf = new Map<unknown, string>()
  const running = new Map<unknown, { device: number; bandwidth: number; way: string }>()
  const devices = (events.find(({ type }) => type === 'run-started')?.['devices'] ?? []) as {
    name: string
    capacity: number | null
  }[]
  assert.equal(devices.length, limits.length)
  let starts = 0
  for (const event of events) {
    const { type, task, device } = event
    if (type === 'kind-defined') kinds.set(event['kind'], String(event['name']))
    else if (type === 'submitted') kindOf.set(task, kinds.get(event['kind']) ?? '')
    else if (type === 'started' && typeof device === 'number') {
      const name = kindOf.get(task) ?? ''
      const bandwidth = Number(/_(\d+)/.exec(name)?.[1]) * 1e6
      running.set(task, { device, bandwidth, way: name.startsWith('read') ? 'read' : 'write' })
      starts++
      for (const way of ['read', 'write']) {
        const held = [...running.values()].filter(one => one.device === device && one.way === way)
        const sum = held.reduce((all, one) => all + one.bandwidth, 0)
        assert(
          sum <= (limits[device] as number),
          `${sum} of ${limits[device]} ${way} on ${devices[device]?.name}`,
        )
      }
    } else if (['finished', 'failed', 'cancelled', 'returned'].includes(String(type))) running.delete(task)
    else if (type === 'device') {
      const { capacity, name } = devices[device as number] ?? { capacity: null, name: '' }
      assert(Number(event['used']) <= (capacity ?? Infinity), `${String(event['used'])} bytes on ${name}`)
      for (const way of ['read', 'write'])
        assert(Number(event[way]) <= (limits[device as number] as number) * (1 + 1e-9), `${way} on ${name}`)
    }
  }
  assert(starts > 0, 'tasks were started on devices')
  assert.equal(running.size, 0, 'all have ended')
}
