import type { CommandSpec, OperandSpec, OptionSpec } from '../spec.ts'

export const DASHBOARD: OptionSpec = { name: 'dashboard', help: ['serve a live page, and print its address'] }

export const DASHBOARD_CONTROL: OptionSpec = {
  name: 'control',
  isRare: true,
  help: ['with --dashboard: pages may pause, cancel and', 'reorder, by a second address'],
}

export const DASHBOARD_PORT: OptionSpec = {
  name: 'port',
  value: 'PORT',
  kind: 'count',
  isRare: true,
  help: ['port of the page (default: any that is free)'],
}

/** `millrace dashboard`, as data. */
export const DASHBOARD_COMMAND = (run: OperandSpec, whichRun: string): CommandSpec => ({
  name: 'dashboard',
  summary: 'a live page of a run that goes on or has ended',
  usage: 'millrace dashboard [RUN] [options]',
  operands: [run],
  options: [
    { ...DASHBOARD_PORT, isRare: false },
    { name: 'host', value: 'HOST', help: ['address to serve at (default: 127.0.0.1)'] },
  ],
  notes: [whichRun, 'It needs nothing of the run but its journal. Ctrl-C ends it.'],
  load: () => import('./dashboard.ts'),
})
