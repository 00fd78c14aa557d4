import { DASHBOARD, DASHBOARD_PORT } from '../dashboard/dashboard-command.ts'
import { PARTITION } from '../partition-option.ts'
import type { CommandSpec, OptionSpec } from '../spec.ts'

/** `millrace simulate`, as data. */
export const simulateCommand = (policies: readonly string[], files: readonly OptionSpec[]): CommandSpec => ({
  name: 'simulate',
  summary: 'run a program, workflow or recorded run in virtual time',
  usage: 'millrace simulate FILE [--platform PLATFORM] [options] [-- ARGUMENT...]',
  operands: [
    { name: 'FILE', required: true },
    { name: 'ARGUMENT', required: false, rest: true },
  ],
  options: [
    { name: 'platform', value: 'FILE', help: ['the machines to simulate; A.yaml,B.yaml compares'] },
    { name: 'policy', value: 'POLICY', help: [`${policies.join(', ')} or FILE`] },
    {
      name: 'io-policy',
      value: 'POLICY',
      kind: 'choice',
      choices: ['fcfs', 'priority', 'backfill', 'priority-paper', 'backfill-paper'],
      help: ['fcfs, priority, backfill (default: fcfs)'],
    },
    {
      name: 'flush',
      value: 'WHEN',
      kind: 'choice',
      choices: ['off', 'idle', 'always'],
      help: ['data move to lower layers: off, idle, always'],
    },
    {
      name: 'compare',
      value: 'LIST',
      help: ['a table: fifo,lifo or fcfs,backfill,backfill/flush'],
    },
    { name: 'sweep', value: 'NAME=LIST', help: ['a table: nodes=1,2,4 or ssd.bandwidth=500,1000'] },
    PARTITION,
    {
      name: 'lose-node',
      value: 'NODE@TIME',
      repeatable: true,
      isRare: true,
      help: ['this node is lost then: n3@90s; may be repeated'],
    },
    {
      name: 'lose-every',
      value: 'TIME',
      isRare: true,
      help: ['nodes are lost by chance, this mean time apart'],
    },
    { name: 'wall-time', value: 'TIME', isRare: true, help: ['each node ends by itself after that long'] },
    {
      name: 'replace-after',
      value: 'TIME',
      isRare: true,
      help: ['a node that is gone is replaced after that long'],
    },
    { name: 'split-time', isRare: true, help: ['WfFormat: model I/O beside the CPU time of each task'] },
    { name: 'jitter', value: 'SHARE', help: ['let compute times vary by so much: 0.1'] },
    { name: 'seed', value: 'N', kind: 'count', isRare: true, help: ['what chance begins with (default: 1)'] },
    { name: 'json', help: ['results on stdout, one JSON object per line'] },
    ...files,
    { ...DASHBOARD, help: ['show it on a page, until Ctrl-C'] },
    DASHBOARD_PORT,
    { name: 'journal', negative: 'only', help: ['keep nothing in .millrace'] },
  ],
  notes: [
    'FILE: a program or flow.ts with costs, a workflow in WfFormat, or a run of',
    '`millrace runs`; both need no platform. Equal input gives equal output.',
    'Example: millrace simulate flow.json --platform cluster.yaml --compare fifo,lifo',
  ],
  load: () => import('./simulate.ts'),
})
