import type { CommandSpec, OperandSpec } from '../spec.ts'

/** `millrace report`, `compare` and `crate`, as data. */
export const reportCommands = (run: OperandSpec, whichRun: string): CommandSpec[] => [
  {
    name: 'report',
    summary: 'one HTML file about a run, to send or to print',
    usage: 'millrace report [RUN] [-o FILE]',
    operands: [run],
    options: [{ name: 'output', short: 'o', value: 'FILE', help: ['the file to write (default: RUN.html)'] }],
    notes: [whichRun, 'The file needs no server and nothing from the network.'],
    load: () => import('./report.ts'),
  },
  {
    name: 'compare',
    summary: 'what became slower or faster from one run to another',
    usage: 'millrace compare RUN RUN [-o FILE] [--json]',
    operands: [
      { name: 'RUN', required: true },
      { name: 'RUN', required: true },
    ],
    options: [
      { name: 'output', short: 'o', value: 'FILE', help: ['also write it as a page (.html)'] },
      { name: 'json', help: ['one JSON object on stdout'] },
    ],
    notes: ['RUN is a name from `millrace runs`, or its beginning. Older one first.'],
    load: () => import('./compare.ts'),
  },
  {
    name: 'crate',
    summary: 'provenance of a run as an RO-Crate: files, checksums, programs',
    usage: 'millrace crate [RUN] [-o FOLDER]',
    operands: [run],
    options: [
      { name: 'output', short: 'o', value: 'FOLDER', help: ['the crate (default: the folder of the run)'] },
      { name: 'license', value: 'URL', help: ['licence of the data'] },
    ],
    notes: [whichRun, 'It writes ro-crate-metadata.json; files stay where they are.'],
    load: () => import('./crate.ts'),
  },
]
