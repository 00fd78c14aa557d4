import type { CommandSpec, OperandSpec, OptionSpec } from '../spec.ts'

const CONFIG: OperandSpec = { name: 'CONFIG', required: true }

const WORKFLOW: OptionSpec = {
  name: 'workflow',
  value: 'NAME',
  help: ['name of the board (default: CAPIO_WORKFLOW_NAME,', 'else CAPIO)'],
}
const DIR: OptionSpec = {
  name: 'dir',
  value: 'DIR',
  help: ['directory with the files (default: a new one in', 'memory)'],
}
const PLACE: OptionSpec = {
  name: 'place',
  value: 'DIR',
  help: ['where inputs are and permanent files go', '(default: the current directory)'],
}
const LIMIT: OptionSpec = {
  name: 'limit',
  value: 'SECONDS',
  kind: 'count',
  help: ['a wait that lasts longer fails'],
}
const KEEP: OptionSpec = { name: 'keep', help: ['leave temporary files, and say where they are'] }

const NODES: OptionSpec = {
  name: 'nodes',
  value: 'NODES',
  help: ['on several nodes: local:2, ssh:h1,h2 or slurm'],
}

const load: CommandSpec['load'] = () => import('./stream.ts')

/** `millrace stream …`: each is a command with a name of two words. `recording`: how a run is shown and recorded. */
export const streamCommands = (recording: readonly OptionSpec[]): readonly CommandSpec[] => [
  {
    name: 'stream run',
    summary: 'run all steps of a workflow at once, under its rules',
    usage: 'millrace stream run CONFIG --step NAME=COMMAND... | --steps FILE',
    operands: [CONFIG],
    options: [
      {
        name: 'step',
        value: 'NAME=CMD',
        repeatable: true,
        help: ['the command of a step; may be repeated'],
      },
      { name: 'steps', value: 'FILE', help: ['the commands of the steps, as JSON'] },
      DIR,
      PLACE,
      LIMIT,
      KEEP,
      { name: 'reserve', value: 'SIZE', kind: 'size', help: ['memory that is to stay free'] },
      ...recording,
      {
        name: 'nodes',
        value: 'NODES',
        help: ['run steps on several nodes: local:2, ssh:h1,h2 or', 'slurm'],
      },
    ],
    notes: [
      'Exit codes: 0 ok, 1 a step failed, 2 usage or configuration, 130 interrupted.',
      "Example: millrace stream run C.json --step make=./make.sh --step use='wc out'",
    ],
    load,
  },
  {
    name: 'stream check',
    summary: 'print the plan of a configuration, or what is wrong with it',
    usage: 'millrace stream check CONFIG [--graph]',
    operands: [CONFIG],
    options: [{ name: 'graph', help: ['the graph of steps and files, in DOT'] }],
    notes: ['Starts nothing. Exit code 2 when the configuration is wrong.'],
    load,
  },
  {
    name: 'stream up',
    summary: 'make the board of a workflow, whose steps you start yourself',
    usage: 'millrace stream up CONFIG [options]',
    operands: [CONFIG],
    options: [
      WORKFLOW,
      DIR,
      PLACE,
      LIMIT,
      {
        name: 'grace',
        value: 'SECONDS',
        kind: 'count',
        help: ['how long a step that has not begun is waited for'],
      },
      {
        name: 'times',
        value: 'STEP=N',
        repeatable: true,
        help: ['how often a step will be started; may be repeated'],
      },
      NODES,
      {
        name: 'at',
        value: 'STEP=NODE',
        repeatable: true,
        help: ['with --nodes: where a step will be started'],
      },
    ],
    notes: [
      'Then start steps with `millrace stream exec`, or with LD_PRELOAD and CAPIO_*.',
      'With --nodes it stays until all steps have ended, or Ctrl-C.',
    ],
    load,
  },
  {
    name: 'stream exec',
    summary: 'run one program as a step of a workflow that is up',
    usage: 'millrace stream exec --app NAME -- PROGRAM [ARGUMENT...]',
    operands: [{ name: 'PROGRAM', required: false, rest: true }],
    options: [{ name: 'app', value: 'NAME', help: ['the step (default: CAPIO_APP_NAME)'] }, WORKFLOW],
    notes: ['The exit code is that of the program.'],
    load,
  },
  {
    name: 'stream ps',
    summary: 'what runs, and who waits for whom',
    usage: 'millrace stream ps [--workflow NAME] [--json]',
    operands: [],
    options: [WORKFLOW, { name: 'json', help: ['one JSON object per line'] }, NODES],
    notes: [],
    load,
  },
  {
    name: 'stream down',
    summary: 'end a workflow: permanent files to their place, the rest removed',
    usage: 'millrace stream down [options]',
    operands: [],
    options: [
      WORKFLOW,
      { name: 'force', help: ['also when steps still run: their waits fail'] },
      {
        name: 'wait',
        value: 'SECONDS',
        kind: 'count',
        help: ['how long running steps get to end by themselves'],
      },
      KEEP,
    ],
    notes: [],
    load,
  },
  {
    name: 'stream node',
    summary: 'one node of a workflow; started by stream run --nodes',
    usage: 'millrace stream node',
    operands: [],
    options: [],
    notes: ['It takes its orders on standard input, and ends with the workflow.'],
    load,
  },
]
