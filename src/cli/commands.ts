import type { CommandSpec, OperandSpec, OptionSpec } from './spec.ts'
import { simulateCommand } from './simulate-command.ts'
import { STREAM_COMMANDS } from './stream-commands.ts'

// The names are repeated here, because the modules that own them are heavier than all of the parser; a test
// compares them.
export const POLICY_NAMES = ['fifo', 'lifo', 'fifo-data', 'hrf', 'lifo+hrf', 'rank'] as const
export const IO_POLICY_NAMES = ['fcfs', 'priority', 'backfill'] as const
export const FLUSH_MODES = ['off', 'idle', 'always'] as const
export const PROGRESS_MODES = ['live', 'plain', 'json', 'none'] as const

export const HELP: OptionSpec = { name: 'help', short: 'h', help: ['show this'] }

const RUN: OperandSpec = { name: 'RUN', required: false }
const TASK: OperandSpec = { name: 'TASK', required: true }

const WHICH_RUN = 'RUN is a name from `millrace runs`, or its beginning. Default: the last run.'
const WHICH_TASK = 'TASK is a number (12), a name (align: the first that failed) or both (align#12).'

const TRACE: OptionSpec = {
  name: 'trace',
  value: 'FILE',
  help: ['write a trace for ui.perfetto.dev (.json or .json.gz)'],
}
const GRAPH: OptionSpec = { name: 'graph', value: 'FILE', help: ['write the graph of tasks, in DOT'] }

const PICTURE: OptionSpec = { name: 'picture', value: 'FILE', help: ['draw the run: a lane per CPU (.svg)'] }

export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'run',
    summary: 'run a program whose functions are tasks',
    usage: 'millrace run PROGRAM [options] [-- ARGUMENT...]',
    operands: [
      { name: 'PROGRAM', required: true },
      { name: 'ARGUMENT', required: false, rest: true },
    ],
    options: [
      {
        name: 'cpus',
        value: 'N',
        kind: 'count',
        help: ({ cpus }) => [`CPUs that tasks may use (default: ${cpus}, all)`],
      },
      {
        name: 'memory',
        value: 'SIZE',
        kind: 'size',
        help: ({ memory }) => [`memory that tasks may claim (default: ${memory})`],
      },
      {
        name: 'machine',
        value: 'FILE',
        help: ['description of this machine and its storage'],
      },
      {
        name: 'io-policy',
        value: 'POLICY',
        kind: 'choice',
        choices: IO_POLICY_NAMES,
        help: [IO_POLICY_NAMES.join(', ')],
      },
      {
        name: 'flush',
        value: 'WHEN',
        kind: 'choice',
        choices: FLUSH_MODES,
        help: ['move data to slower storage: off, idle or always'],
      },
      {
        name: 'max-intermediate',
        value: 'SIZE',
        kind: 'size',
        help: ['room that temporary files may take'],
      },
      { name: 'tag', value: 'TAG', repeatable: true, help: ['what this machine has; may be repeated'] },
      { name: 'bind', help: ['bind each command to the CPUs that it holds'] },
      {
        name: 'policy',
        value: 'POLICY',
        help: [`${POLICY_NAMES.join(', ')} or FILE`],
      },
      {
        name: 'progress',
        value: 'MODE',
        kind: 'choice',
        choices: PROGRESS_MODES,
        help: [`${PROGRESS_MODES.join(', ')}`],
      },
      { name: 'json', help: ['same as --progress json: events on stdout, as NDJSON'] },
      { name: 'color', negative: 'both', help: ['colours (default: on a terminal)'] },
      TRACE,
      GRAPH,
      PICTURE,
      { name: 'journal', negative: 'only', help: ['keep nothing in .millrace'] },
    ],
    notes: ['Exit codes: 0 ok, 1 a task or the program failed, 2 usage, 130 interrupted.'],
    load: () => import('./run.ts'),
  },
  {
    name: 'make',
    summary: 'bring the files of a workflow (flow.ts) up to date',
    usage: 'millrace make [TARGET...] [options] [-- NAME=VALUE...]',
    operands: [{ name: 'TARGET', required: false, rest: true }],
    options: [
      {
        name: 'jobs',
        short: 'j',
        value: 'N',
        kind: 'count',
        help: ({ cpus }) => [`CPUs that tasks may use (default: ${cpus}, all)`],
      },
      { name: 'policy', value: 'POLICY', help: [`${POLICY_NAMES.join(', ')} or FILE`] },
      { name: 'dry-run', short: 'n', help: ['print what would be run, and run nothing'] },
      { name: 'explain', help: ['say why each task is run'] },
      { name: 'keep-going', short: 'k', help: ['after a failure, do what does not need it'] },
      { name: 'force', help: ['run everything that the targets need'] },
      { name: 'touch', help: ['take files that are there as up to date'] },
      { name: 'clean', help: ['delete what was made'] },
      { name: 'watch', help: ['go on, and make again when a source changes'] },
      { name: 'cache', value: 'DIR', help: ['take outputs from DIR where it has them; keep them'] },
      { name: 'graph', value: 'FILE', help: ['write the graph of the workflow, in DOT'] },
      TRACE,
      { name: 'file', value: 'FILE', help: ['the workflow file (default: flow.ts in this folder)'] },
      {
        name: 'progress',
        value: 'MODE',
        kind: 'choice',
        choices: PROGRESS_MODES,
        help: [`${PROGRESS_MODES.join(', ')}`],
      },
    ],
    notes: [
      'TARGET is a target or a file. Default: the first target of the workflow.',
      'Example: millrace make mosaic -j 4 -- size=8',
    ],
    load: () => import('./make.ts'),
  },
  {
    name: 'runs',
    summary: 'list the runs of this folder, newest first',
    usage: 'millrace runs [--json]',
    operands: [],
    options: [{ name: 'json', help: ['one JSON object per line'] }],
    notes: ['Runs are kept in .millrace/runs of the folder they were started in, the last 50.'],
    load: () => import('./runs.ts'),
  },
  {
    name: 'show',
    summary: 'summary of a run: outcome, kinds of tasks, failures',
    usage: 'millrace show [RUN] [options]',
    operands: [RUN],
    options: [TRACE, GRAPH, PICTURE, { name: 'json', help: ['all events of the run on stdout, as NDJSON'] }],
    notes: [WHICH_RUN, 'Example: millrace show --trace run.json'],
    load: () => import('./show.ts'),
  },
  {
    name: 'story',
    summary: 'what happened to one task, and why it waited',
    usage: 'millrace story TASK [RUN]',
    operands: [TASK, RUN],
    options: [],
    notes: [WHICH_TASK, WHICH_RUN],
    load: () => import('./story.ts'),
  },
  {
    name: 'explain',
    summary: 'which limits a run has learned for its storage, and from what',
    usage: 'millrace explain [RUN]',
    operands: [RUN],
    options: [],
    notes: [WHICH_RUN],
    load: () => import('./explain.ts'),
  },
  {
    name: 'logs',
    summary: 'what one task printed',
    usage: 'millrace logs TASK [RUN] [--attempt N]',
    operands: [TASK, RUN],
    options: [{ name: 'attempt', value: 'N', kind: 'count', help: ['only this attempt (default: all)'] }],
    notes: [WHICH_TASK, WHICH_RUN],
    load: () => import('./logs.ts'),
  },
  {
    name: 'doctor',
    summary: 'check whether this machine and folder are fit for Millrace',
    usage: 'millrace doctor [--measure] [--machine FILE] [--json]',
    operands: [],
    options: [
      { name: 'measure', help: ['measure how fast storage is, and remember it'] },
      { name: 'machine', value: 'FILE', help: ['measure the devices that it describes'] },
      { name: 'json', help: ['one JSON object per line'] },
    ],
    notes: ['Exit code 1 when a check fails; warnings do not count.'],
    load: () => import('./doctor.ts'),
  },
  simulateCommand(POLICY_NAMES, [TRACE, GRAPH, PICTURE]),
  ...STREAM_COMMANDS,
]
