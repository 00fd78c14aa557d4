import {
  DASHBOARD,
  DASHBOARD_COMMAND,
  DASHBOARD_CONTROL,
  DASHBOARD_PORT,
} from './dashboard/dashboard-command.ts'
import { reportCommands } from './report/report-commands.ts'
import { PARTITION } from './partition-option.ts'
import type { CommandSpec, OperandSpec, OptionSpec } from './spec.ts'
import { simulateCommand } from './simulate/simulate-command.ts'
import { streamCommands } from './stream/stream-commands.ts'

// The names are repeated here, because the modules that own them are heavier than all of the parser; a test
// compares them.
export const POLICY_NAMES = ['fifo', 'lifo', 'fifo-data', 'hrf', 'lifo+hrf', 'rank'] as const
export const IO_POLICY_NAMES = ['fcfs', 'priority', 'backfill', 'priority-paper', 'backfill-paper'] as const
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

const PARAVER: OptionSpec = {
  name: 'paraver',
  value: 'FILE',
  isRare: true,
  help: ['write a trace for Paraver: FILE.prv, .pcf and .row'],
}

const OTLP: OptionSpec = {
  name: 'otlp',
  value: 'URL',
  isRare: true,
  help: ['send spans and metrics to an OpenTelemetry', 'collector: http://localhost:4318'],
}

const PROGRESS: OptionSpec = {
  name: 'progress',
  value: 'MODE',
  kind: 'choice',
  choices: PROGRESS_MODES,
  help: [`${PROGRESS_MODES.join(', ')}`],
}
const JSON_EVENTS: OptionSpec = {
  name: 'json',
  help: ['same as --progress json: events on stdout, as NDJSON'],
}
const COLOR: OptionSpec = { name: 'color', negative: 'both', help: ['colours (default: on a terminal)'] }
const NO_JOURNAL: OptionSpec = { name: 'journal', negative: 'only', help: ['keep nothing in .millrace'] }

/** How tasks are run, whatever they come from: `run` and `make` have them all. */
export const RUN_OPTIONS: readonly OptionSpec[] = [
  {
    name: 'memory',
    value: 'SIZE',
    kind: 'size',
    help: ({ memory }) => [`memory that tasks may claim (default: ${memory})`],
  },
  { name: 'machine', value: 'FILE', help: ['description of this machine and its storage'] },
  {
    name: 'io-policy',
    isRare: true,
    value: 'POLICY',
    kind: 'choice',
    choices: IO_POLICY_NAMES,
    help: ['fcfs, priority, backfill, priority-paper, …'],
  },
  {
    name: 'io-executors',
    isRare: true,
    value: 'N',
    kind: 'count',
    help: ['I/O tasks that may run at one time'],
  },
  {
    name: 'flush',
    isRare: true,
    value: 'WHEN',
    kind: 'choice',
    choices: FLUSH_MODES,
    help: ['move data to slower storage: off, idle or always'],
  },
  {
    name: 'nodes',
    value: 'NODES',
    help: ['machines: local:4, ssh:user@h1,h2:8, slurm or FILE'],
  },
  {
    name: 'slurm',
    value: 'OPTIONS',
    isRare: true,
    help: ['nodes by sbatch: partition=main,time=1h --nodes 0..8'],
  },
  { name: 'max-intermediate', value: 'SIZE', kind: 'size', help: ['room that temporary files may take'] },
  { name: 'policy', value: 'POLICY', help: [`${POLICY_NAMES.join(', ')} or FILE`] },
  PROGRESS,
  { name: 'step-times', isRare: true, help: ['measure the steps of tasks: fetch, decode, run, …'] },
  DASHBOARD,
  DASHBOARD_CONTROL,
  DASHBOARD_PORT,
]

/** Help of `make` has no room for these on its first screen. */
const RARE_IN_MAKE = ['machine', 'max-intermediate', 'nodes', 'memory']

const rare = (option: OptionSpec): OptionSpec => ({ ...option, isRare: true })

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
      ...RUN_OPTIONS,
      {
        name: 'tag',
        value: 'TAG',
        repeatable: true,
        isRare: true,
        help: ['what this machine has; may be repeated'],
      },
      {
        name: 'bind',
        value: '[WHICH]',
        kind: 'choice',
        choices: ['all', 'wide', 'off'],
        isRare: true,
        help: ['tasks to bind to their CPUs: all, off, or wide', '(those with several CPUs; default)'],
      },
      {
        name: 'resume',
        value: 'RUN',
        isOptional: true,
        help: ['use results that earlier runs kept, or those of RUN'],
      },
      { name: 'explain', isRare: true, help: ['say which kept results were used, and why not'] },
      {
        name: 'checkpoint',
        isRare: true,
        value: 'WHEN',
        help: [
          'results to keep: auto, all, tasks, groups, off;',
          'or when: a number of tasks, or a time (30s)',
        ],
      },
      {
        name: 'keep',
        isRare: true,
        value: 'SIZE',
        kind: 'size',
        help: ['what kept results may take (default: 20GB)'],
      },
      {
        name: 'cache',
        isRare: true,
        value: 'PATH',
        help: ['keep results in PATH and share them; PATH:ro reads'],
      },
      JSON_EVENTS,
      COLOR,
      TRACE,
      GRAPH,
      PICTURE,
      PARAVER,
      OTLP,
      NO_JOURNAL,
    ],
    notes: ['Exit codes: 0 ok, 1 a task or the program failed, 2 usage, 130 interrupted.'],
    load: () => import('./run/run.ts'),
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
      ...RUN_OPTIONS.map(option =>
        RARE_IN_MAKE.includes(option.name) ? { ...option, isRare: true } : option,
      ),
      PARTITION,
      { name: 'dry-run', short: 'n', help: ['print what would be run, and run nothing'] },
      { name: 'explain', help: ['say why each task is run'] },
      { name: 'keep-going', short: 'k', help: ['after a failure, do what does not need it'] },
      { name: 'force', help: ['run everything that the targets need'] },
      { name: 'force-only', isRare: true, help: ['run the targets again, not what they need'] },
      {
        name: 'force-rule',
        isRare: true,
        value: 'RULE',
        repeatable: true,
        help: ['run what this rule makes; may be repeated'],
      },
      { name: 'list', help: ['list the targets and rules of the workflow'] },
      { name: 'touch', help: ['take files that are there as up to date'] },
      { name: 'clean', help: ['delete what was made'] },
      { name: 'watch', help: ['go on, and make again when a source changes'] },
      {
        name: 'cache',
        value: 'PATH',
        isRare: true,
        help: ['take outputs from PATH and keep them; PATH:ro reads'],
      },
      {
        name: 'keep',
        isRare: true,
        value: 'SIZE',
        kind: 'size',
        help: ['what the cache may take (default: 20GB)'],
      },
      { name: 'graph', value: 'FILE', isRare: true, help: ['write the graph of the workflow, in DOT'] },
      TRACE,
      { name: 'file', value: 'FILE', help: ['the workflow file (default: flow.ts in this folder)'] },
    ],
    notes: [
      'TARGET is a target or a file. Default: the first target of the workflow.',
      'Example: millrace make mosaic -j 4 -- size=8',
    ],
    load: () => import('./make/make.ts'),
  },
  {
    name: 'runs',
    summary: 'list the runs of this folder, newest first',
    usage: 'millrace runs [--json]',
    operands: [],
    options: [{ name: 'json', help: ['one JSON object per line'] }],
    notes: ['Runs are kept in .millrace/runs of the folder they were started in, the last 50.'],
    load: () => import('./inspect/runs.ts'),
  },
  {
    name: 'show',
    summary: 'summary of a run: outcome, kinds of tasks, failures',
    usage: 'millrace show [RUN] [options]',
    operands: [RUN],
    options: [
      TRACE,
      GRAPH,
      PICTURE,
      PARAVER,
      OTLP,
      { name: 'json', help: ['all events of the run on stdout, as NDJSON'] },
    ],
    notes: [WHICH_RUN, 'Example: millrace show --trace run.json'],
    load: () => import('./inspect/show.ts'),
  },
  DASHBOARD_COMMAND(RUN, WHICH_RUN),
  ...reportCommands(RUN, WHICH_RUN),
  {
    name: 'story',
    summary: 'what happened to one task, and why it waited',
    usage: 'millrace story TASK [RUN]',
    operands: [TASK, RUN],
    options: [],
    notes: [WHICH_TASK, WHICH_RUN],
    load: () => import('./inspect/story.ts'),
  },
  {
    name: 'explain',
    summary: 'which limits a run has learned for its storage, and from what',
    usage: 'millrace explain [RUN]',
    operands: [RUN],
    options: [],
    notes: [WHICH_RUN],
    load: () => import('./inspect/explain.ts'),
  },
  {
    name: 'logs',
    summary: 'what one task printed',
    usage: 'millrace logs TASK [RUN] [--attempt N]',
    operands: [TASK, RUN],
    options: [{ name: 'attempt', value: 'N', kind: 'count', help: ['only this attempt (default: all)'] }],
    notes: [WHICH_TASK, WHICH_RUN],
    load: () => import('./inspect/logs.ts'),
  },
  {
    name: 'doctor',
    summary: 'check whether this machine and folder are fit for Millrace',
    usage: 'millrace doctor [--measure] [--machine FILE] [--nodes NODES] [--json]',
    operands: [],
    options: [
      { name: 'measure', help: ['measure how fast storage is, and remember it'] },
      { name: 'machine', value: 'FILE', help: ['measure the devices that it describes'] },
      { name: 'nodes', value: 'NODES', help: ['check these machines, too: as for run --nodes'] },
      { name: 'json', help: ['one JSON object per line'] },
    ],
    notes: ['Exit code 1 when a check fails; warnings do not count.'],
    load: () => import('./doctor/doctor.ts'),
  },
  {
    name: 'nodes',
    summary: 'which machines a run would have, and what they have',
    usage: 'millrace nodes NODES [--json]',
    operands: [{ name: 'NODES', required: true }],
    options: [{ name: 'json', help: ['one JSON object per line'] }],
    notes: ['NODES is what run --nodes takes: local:4, ssh:user@h1,h2:8, slurm or FILE.'],
    load: () => import('./nodes/nodes.ts'),
  },
  {
    name: 'agent',
    summary: 'run tasks of a coordinator; started by run --nodes',
    usage: 'millrace agent [--orders FILE]',
    operands: [],
    options: [{ name: 'orders', value: 'FILE', isRare: true, help: ['where its orders are, in one line'] }],
    notes: ['It reads on its standard input where to call, and ends with the run.'],
    load: () => import('./agent/agent.ts'),
  },
  simulateCommand(POLICY_NAMES, [TRACE, GRAPH, PICTURE, PARAVER]),
  ...streamCommands([
    PROGRESS,
    DASHBOARD,
    DASHBOARD_CONTROL,
    DASHBOARD_PORT,
    TRACE,
    ...[JSON_EVENTS, COLOR, GRAPH, PICTURE, PARAVER, OTLP, NO_JOURNAL].map(rare),
  ]),
]
