import type { LiveRun } from './live-run.ts'

/** The run in the text format of Prometheus. */
export function metricsText(run: LiveRun): string {
  const lines: string[] = []
  const { model } = run
  const { statistics } = model
  const name = model.run?.run ?? ''
  const metric = (
    metricName: string,
    type: 'gauge' | 'counter',
    help: string,
    values: [labels: Record<string, string>, value: number][],
  ): void => {
    if (values.length === 0) return
    lines.push(`# HELP ${metricName} ${help}`, `# TYPE ${metricName} ${type}`)
    // Two kinds may have one name; a series may be there once only.
    const sums = new Map<string, number>()
    for (const [labels, value] of values) {
      const text = labelText({ run: name, ...labels })
      sums.set(text, (sums.get(text) ?? 0) + value)
    }
    for (const [labels, value] of sums) lines.push(`${metricName}${labels} ${value}`)
  }
  metric('millrace_elapsed_seconds', 'gauge', 'Time since the start of the run.', [[{}, run.now / 1000]])
  metric('millrace_run_ended', 'gauge', '1 when the run has ended.', [[{}, run.isOver ? 1 : 0]])
  const kinds = [...statistics.kinds.values()].filter(kind => kind.submitted > 0)
  const states = ['waiting', 'ready', 'running', 'blocked', 'done', 'failed', 'ignored', 'cancelled'] as const
  metric(
    'millrace_tasks',
    'gauge',
    'Tasks by kind and state.',
    kinds.flatMap(kind =>
      states.map((state): [Record<string, string>, number] => [{ kind: kind.name, state }, kind[state]]),
    ),
  )
  metric(
    'millrace_task_seconds_total',
    'counter',
    'Running time of all attempts.',
    kinds.map(kind => [{ kind: kind.name }, kind.busyMs / 1000]),
  )
  metric(
    'millrace_attempts_repeated_total',
    'counter',
    'Attempts that were lost or failed and made again.',
    kinds.map(kind => [{ kind: kind.name }, kind.retried]),
  )
  metric(
    'millrace_node_cpus',
    'gauge',
    'CPUs of a node.',
    model.nodes.map(node => [{ node: node.name }, node.cpus]),
  )
  metric(
    'millrace_node_cpus_busy',
    'gauge',
    'CPUs that tasks hold.',
    model.nodes.map(node => [{ node: node.name }, node.cpusNow]),
  )
  const devices = model.storage.devices
  const labelsOf = ({ facts }: (typeof devices)[number]): Record<string, string> => ({
    device: facts.name,
    ...(facts.node === null ? {} : { node: model.nodes[facts.node]?.name ?? String(facts.node) }),
  })
  const ofDevices = (
    read: (device: (typeof devices)[number]) => number,
  ): [Record<string, string>, number][] => devices.map(device => [labelsOf(device), read(device)])
  metric(
    'millrace_device_used_bytes',
    'gauge',
    'Room that is taken.',
    ofDevices(({ state }) => state?.used ?? 0),
  )
  metric(
    'millrace_device_running',
    'gauge',
    'Tasks that use the device.',
    ofDevices(({ state }) => state?.running ?? 0),
  )
  metric(
    'millrace_device_waiting',
    'gauge',
    'Tasks that wait for the device.',
    ofDevices(({ state }) => state?.waiting ?? 0),
  )
  metric(
    'millrace_device_bandwidth_given_bytes_per_second',
    'gauge',
    'Bandwidth that is given out.',
    devices.flatMap((device): [Record<string, string>, number][] => [
      [{ ...labelsOf(device), direction: 'read' }, device.state?.read ?? 0],
      [{ ...labelsOf(device), direction: 'write' }, device.state?.write ?? 0],
    ]),
  )
  metric('millrace_moved_bytes_total', 'counter', 'Bytes moved between devices.', [
    [{ why: 'flush' }, model.storage.moved.flush.bytes],
    [{ why: 'prefetch' }, model.storage.moved.prefetch.bytes],
  ])
  return `${lines.join('\n')}\n`
}

function labelText(labels: Record<string, string>): string {
  const escaped = (text: string): string =>
    text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
  return `{${Object.entries(labels)
    .map(([key, value]) => `${key}="${escaped(value)}"`)
    .join(',')}}`
}
