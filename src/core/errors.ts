/**
 * Every error that a user can meet has a stable code here; `docs/errors.md` lists exactly these and a test
 * holds the two together. The sentence that is thrown says what is wrong in this case; `remedy` is the
 * way out that fits all cases, used when the place that throws has no better one.
 */
export const ERRORS = {
  MR_OPTION: {
    meaning: 'An option is unknown or has a value that it cannot have.',
    remedy: 'See `millrace --help` or the types of the option.',
  },
  MR_UNIT: {
    meaning: 'A size, rate or duration could not be read.',
    remedy: 'Write a number, or a number with a unit: 512MB, 1.5GiB, 200MB/s, 30s, 5min.',
  },
  MR_ENV: {
    meaning: 'A constraint names an environment variable that is not set.',
    remedy: 'Set the variable, or give the constraint a value.',
  },
  MR_CONSTRAINT: {
    meaning: 'A task asks for more than any node of this run has, or for a tag that none has.',
    remedy: 'Ask for less, or run where there is more.',
  },
  MR_MACHINE: {
    meaning: 'The description of the machine cannot be read; the message says where and what to write.',
    remedy: 'docs/machine.md has the format.',
  },
  MR_NODES: {
    meaning: 'What --nodes or `nodes` says cannot be read, or does not fit the rest of the run.',
    remedy: 'Write local:4, ssh:user@h1,h2:8 or slurm; docs/cluster.md has all forms.',
  },
  MR_NODE_UNREACHABLE: {
    meaning: 'The agent of a node could not be started, or could not call the coordinator.',
    remedy: 'Try `ssh HOST node --version`, or srun; the message has what was said there.',
  },
  MR_NODE_VERSION: {
    meaning: 'A node has another version of Millrace or of Node.',
    remedy: 'Install the same versions on all nodes, or use a folder that all of them see.',
  },
  MR_TRANSFER: {
    meaning: 'A file could not be brought to a node that does not see your folders, or from there.',
    remedy:
      'See whether the file was changed while the run read it, and whether the disk of the node is full.',
  },
  MR_SLURM: {
    meaning: 'Slurm refused to give nodes: the partition, the account, the time or the size is not possible.',
    remedy: 'Try the words of --slurm with `sbatch --test-only`; `sinfo` has the partitions.',
  },
  MR_MPI: {
    meaning: 'MPI tasks cannot run: there is no MPI, it cannot be started, or the run uses other machines.',
    remedy:
      'Install an MPI, for instance openmpi-bin and libopenmpi-dev (Debian), or mpich and libmpich-dev.',
  },
  MR_HDF5: {
    meaning: 'HDF5 refused a call of an MPI task, or there is no parallel HDF5 for the MPI of the site.',
    remedy:
      'Install libhdf5-openmpi-dev, or libhdf5-mpich-dev for MPICH (Debian), and pkg-config; else look at the file and the names.',
  },
  MR_MPI_RANK: {
    meaning: 'A process of an MPI task died: it was killed, crashed or called process.exit.',
    remedy: 'Look at what the rank printed; with retries the task starts again from its inputs.',
  },
  MR_MPI_MISUSE: {
    meaning: 'Ranks of an MPI task made calls that do not fit together; the message says where each was.',
    remedy:
      'All ranks of a communicator make the same collective calls in the same order, and each message is received.',
  },
  MR_DEVICE: {
    meaning:
      'A storage device failed: it is full, read-only, or not there, and what was needed of it is lost.',
    remedy: 'Look at the device; `millrace doctor --measure` tries all that are known.',
  },
  MR_NOT_TOP_LEVEL: {
    meaning:
      'A task was defined where compute threads cannot find it: inside `main`, inside a function, or not at all when its module is loaded there.',
    remedy: 'Define the task at the top level of a module.',
  },
  MR_CALL_AT_LOAD: {
    meaning: 'A module calls tasks while it is being loaded by a compute thread.',
    remedy: 'Put the calls into main(async () => { … }), which only the coordinator runs.',
  },
  MR_MODULE: {
    meaning: 'The program, or the module of a task, could not be loaded: it is missing, or it throws.',
    remedy: 'Make sure that the file exists and that it loads by itself.',
  },
  MR_BUNDLED: {
    meaning:
      'A bundler has put Millrace into the program, where threads do not find the files that they load.',
    remedy: 'Keep the package external: `esbuild --packages=external`, or `--external:millrace`.',
  },
  MR_NOT_CLONEABLE: {
    meaning:
      'A value cannot go to another thread: a function, a symbol, a socket, a promise, or an instance of a class that no task module exports.',
    remedy:
      'Pass plain data, or export the class from a module that defines tasks and call them inside main().',
  },
  MR_DIRECTION: {
    meaning: 'The directions of a task do not fit its parameters, or an argument does not fit its direction.',
    remedy: 'Give one direction per parameter; paths are strings, OUT and INOUT need objects.',
  },
  MR_ALIAS: {
    meaning:
      'An object is part of another object that a task is writing, so that its value is not known here.',
    remedy: 'waitOn() the whole first, or pass the parts as parameters of their own.',
  },
  MR_NESTED_CYCLE: {
    meaning: 'A task waits, through tasks that it called, for its own output.',
    remedy: 'Do not read in a nested task what the calling task has not finished writing.',
  },
  MR_TASK_FAILED: {
    meaning: 'A task threw, or its command failed.',
    remedy: 'The cause is below; the log of the task has what it printed.',
  },
  MR_TIMEOUT: {
    meaning: 'A task ran longer than its timeout and was stopped.',
    remedy: 'Raise `timeout`, or look in its log for what it was doing.',
  },
  MR_EXIT_CODE: {
    meaning: 'A command ended with an exit code that counts as failure, or by a signal.',
    remedy: 'Read the end of its output; `exitCodes` says which codes count as success.',
  },
  MR_SPAWN: {
    meaning: 'A command could not be started.',
    remedy: 'Check that the program is installed and on the PATH, and that the working directory exists.',
  },
  MR_THREAD_DIED: {
    meaning: 'The compute thread of a task ended under it: out of memory, process.exit, or a crash.',
    remedy: 'Give the task less to do at once; do not call process.exit in a task.',
  },
  MR_OUTPUT_MISSING: {
    meaning: 'A task ended well but did not write a file or directory that it declares as output.',
    remedy: 'Write to the path that the task is given, not to a path of its own.',
  },
  MR_OUTPUT_FOLDER: {
    meaning:
      'The folder of an output cannot be written or made, or a folder is where a file is to be written.',
    remedy: 'Write to another place, or get permission for this one.',
  },
  MR_PATH: {
    meaning:
      'A path cannot be used: it is too long, leads through something that is not a folder, or an output names a device, a FIFO or a socket.',
    remedy:
      'Give another path. A program that is to write to a device is given its path as an ordinary argument (IN).',
  },
  MR_INPUT_MISSING: {
    meaning: 'A file or directory that a task reads does not exist and no task makes it.',
    remedy: 'Check the path; make the file before the call, or by a task.',
  },
  MR_STORE: {
    meaning: 'The store of kept results cannot be read or written.',
    remedy: 'Check the folder and its disk; `--checkpoint off` runs without it.',
  },
  MR_STORE_VERSION: {
    meaning: 'The store of kept results was written by a Millrace with another format.',
    remedy:
      'Use that version, name another folder by --cache, or delete the store: then all tasks run again.',
  },
  MR_DATA_LOST: {
    meaning: 'The only copy of a value was lent to a thread that died.',
    remedy: 'Give the task that died `retries`, so that its inputs are kept, or use shared().',
  },
  MR_CANCELLED: {
    meaning:
      'The task was cancelled, because something it needs failed, its group was cancelled, or the run was stopped.',
    remedy: 'The cause names the failure behind it.',
  },
  MR_REMOVED: {
    meaning: 'A value or file was used after remove() or removeFile().',
    remedy: 'Remove data after its last use.',
  },
  MR_GROUP: {
    meaning: 'A group is used in a way that makes no sense: the name is unknown, or in use.',
    remedy: 'Use one name per group at a time.',
  },
  MR_ENDED: {
    meaning: 'A task was called after the run had ended.',
    remedy: 'Call tasks before main returns, and wait for asynchronous work in main.',
  },
  MR_MAIN_WAITS: {
    meaning: 'main did not end, and nothing was left that it could wait for: no task, timer or open file.',
    remedy: 'Look for a promise in main, or in what it calls, that nothing resolves.',
  },
  MR_POLICY: {
    meaning: 'A scheduling policy is unknown, or gave something that is not a score.',
    remedy: 'Use fifo, lifo, fifo-data, hrf, lifo+hrf, rank, or a policy of your own that returns numbers.',
  },
  MR_JOURNAL: {
    meaning: 'A journal or run cannot be read: it is missing, of another version, or not a journal.',
    remedy: '`millrace runs` lists the runs of this folder.',
  },
  MR_DASHBOARD: {
    meaning: 'The live page or a report of a run cannot be served or written.',
    remedy: 'Name another port by --port, or leave it out: then any free one is taken.',
  },
  MR_EXPORT: {
    meaning: 'A run could not be handed to another tool: a collector does not answer, or refused it.',
    remedy:
      'Check the address and whether the tool is up. The journal is kept: `millrace show` can try again.',
  },
  MR_STREAM_CONFIG: {
    meaning: 'A configuration of streams is wrong; the message says where, and what to write instead.',
    remedy: '`millrace stream check CONFIG` shows all that is wrong with it.',
  },
  MR_STREAM_STEPS: {
    meaning: 'The commands of the steps do not fit the configuration, or cannot be read.',
    remedy: 'Give each step of the configuration a command by --step NAME=COMMAND or --steps FILE.',
  },
  MR_STREAM_DIR: {
    meaning: 'The directory of a workflow cannot be used, or a file in it cannot be put in its place.',
    remedy: 'Name a directory that exists and can be written, with room for the files.',
  },
  MR_STREAM_UNSEEN: {
    meaning:
      'In a directory that several nodes share, a file that one node has written was not seen on another within 30 seconds.',
    remedy:
      'Check that the directory is on one file system on all nodes, or leave out --dir: then bytes go from node to node.',
  },
  MR_STREAM_WRITERS: {
    meaning:
      'Steps on two nodes write one file. A file grows on one node, from where it goes to others. A permanent file that no other node reads is found at the end: then what is in its place is what one of the nodes wrote.',
    remedy: 'Place the steps that write it on one node, or let each write a file of its own.',
  },
  MR_STREAM_BOARD: {
    meaning: 'The shared board of a workflow cannot be made, found or ended.',
    remedy: '`millrace stream ps` shows what is up; `millrace stream down` ends it.',
  },
  MR_STREAM_BUILD: {
    meaning: 'The library for streaming could not be compiled.',
    remedy: 'Install a C compiler (Debian: apt-get install gcc libc6-dev).',
  },
  MR_STREAM_PLATFORM: {
    meaning: 'Streaming does not work on this machine.',
    remedy: 'Use Linux on x86-64 with the GNU C library.',
  },
  MR_RELEASE: {
    meaning:
      'Something was released early in a way that makes no sense: twice, with a number that is not there, after the end of the task, or outside a task.',
    remedy:
      'Call ready(index, value) once per value, and committed(path) once per file, while the task runs.',
  },
  MR_RELEASE_CHANGED: {
    meaning:
      'An attempt of a task gave other values than an earlier attempt had released. The earlier ones are in use, and a program that has seen them cannot be run backwards.',
    remedy: 'Make the task give the same values each time, or do without early release or without retries.',
  },
  MR_STREAM_TAKEN: {
    meaning: 'The values of a stream are wanted by two: by two loops, two tasks, or a loop and a task.',
    remedy: 'Call the generator task once for each, or take the values once and pass their futures on.',
  },
  MR_NOT_AWAITED: {
    meaning: 'A future was used in a sum, a comparison, a text or JSON, where its value was meant.',
    remedy: 'Write `await future`, or pass it to a task, which gets the value.',
  },
  MR_WORKFLOW_FILE: {
    meaning:
      'A workflow in a file cannot be simulated: the file is malformed, or what it says makes no sense.',
    remedy: 'The message says where, and what is wrong there.',
  },
  MR_FLOW_FILE: {
    meaning: 'There is no workflow file, or it does not say what to make.',
    remedy: 'Write a flow.ts with rules and targets, or name another file with --file.',
  },
  MR_FLOW_RULE: {
    meaning: 'A rule or target is written in a way that makes no sense.',
    remedy: 'See docs/flow.md for the forms that rules and targets can have.',
  },
  MR_FLOW_PARAM: {
    meaning: 'A parameter of the workflow is missing or has a value that it cannot have.',
    remedy: 'Give parameters after --, as in: millrace make -- quality=3',
  },
  MR_FLOW_DATA: {
    meaning:
      'A file of settings or a table that a workflow reads is missing or malformed; the message says where.',
    remedy: 'Correct the file at that line: YAML or JSON for settings, CSV or TSV for tables.',
  },
  MR_LIMIT: {
    meaning: 'Fewer files, processes or threads are allowed than Millrace needs to start.',
    remedy: 'Raise the limit that the message names (ulimit -n, ulimit -u), or use fewer CPUs.',
  },
  MR_FLOW_SH: {
    meaning: 'A value in a shell command cannot be quoted safely, or would be evaluated in spite of quotes.',
    remedy:
      'Put in words, numbers and lists of them; use $( ) instead of backquotes, and give a value to a program as ' +
      'a word of its own, for instance sh -c \'cat "$1"\' sh ${file}.',
  },
  MR_FLOW_AMBIGUOUS: {
    meaning: 'Two rules can make the same file, or two targets have one name.',
    remedy: 'Give wildcards constraints ({name:[0-9]+}) so that only one rule matches.',
  },
  MR_FLOW_CYCLE: {
    meaning: 'A file is needed to make itself, by way of others.',
    remedy: 'Give the output another name than the input.',
  },
  MR_FLOW_MISSING: {
    meaning: 'A file is needed that does not exist and that no rule makes.',
    remedy: 'Check the name, make the file, or write a rule for it.',
  },
  MR_FLOW_KEPT: {
    meaning: 'A file that is marked keep() or protect() is out of date and was not overwritten.',
    remedy: 'Move it away, accept it as it is with --touch, or make it anew with --force.',
  },
  MR_FLOW_EXIT: {
    meaning: 'A workflow file ended the process with `process.exit` before all was made.',
    remedy: 'Leave it out: the process ends by itself when everything is done. Throw an error to end early.',
  },
  MR_FLOW_NAME: {
    meaning: 'A file that a workflow would read has a name that is not UTF-8.',
    remedy: 'Rename it, for instance with `convmv`, or keep it out of folders that the workflow reads.',
  },
  MR_FLOW_TARGET: {
    meaning: 'The function of a target threw an error.',
    remedy: 'The places below the message are where it came from.',
  },
  MR_FLOW_STATE: {
    meaning: 'What Millrace knows of earlier runs cannot be read or written, or is in use by another run.',
    remedy: 'Wait for the other run; make sure that .millrace can be written and that there is room.',
  },
  MR_SIMULATION: {
    meaning: 'A simulation cannot go on: tasks wait for something that the platform does not have.',
    remedy: 'Give the platform what the tasks ask for.',
  },
  MR_INTERNAL: {
    meaning: 'A fault of Millrace itself.',
    remedy: 'Please report it with the journal of the run.',
  },
} as const satisfies Record<string, { meaning: string; remedy: string }>

export type ErrorCode = keyof typeof ERRORS

export interface MillraceErrorOptions {
  hint?: string
  cause?: unknown
}

/** Base of all errors that Millrace throws. `shortMessage` is one line; `message` adds the way out. */
export class MillraceError extends Error {
  override name = 'MillraceError'
  readonly code: ErrorCode
  readonly shortMessage: string
  readonly hint: string

  constructor(code: ErrorCode, shortMessage: string, options: MillraceErrorOptions = {}) {
    const hint = options.hint ?? ERRORS[code].remedy
    super(
      `${shortMessage}\n  ${hint} [${code}]`,
      options.cause === undefined ? undefined : { cause: options.cause },
    )
    this.code = code
    this.shortMessage = shortMessage
    this.hint = hint
  }
}
