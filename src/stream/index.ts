export { streamCheck, streamDown, streamExec, streamPs, streamUp } from './run/commands.ts'
export type {
  CheckOptions,
  DownOptions,
  ExecOptions,
  NameOptions,
  PsOptions,
  UpOptions,
} from './run/commands.ts'
export { parseStepOption, readStepCommands } from './run/step-commands.ts'
export type { StepCommand } from './run/step-commands.ts'
export type { StreamIo } from './run/screen.ts'
export { checkText, loadPlan } from './language/load.ts'
export type { Checked } from './language/load.ts'
export { makePlan, ruleFinder } from './board/plan.ts'
export type { Home, Plan, PlanRule, Storage } from './board/plan.ts'
export { planLines } from './board/plan-lines.ts'
export type { PlanLineOptions } from './board/plan-lines.ts'
export { planTable } from './board/table.ts'
export { planDot } from './language/dot.ts'
export { planGraph } from './language/text-graph.ts'
export { problemText, StreamConfigError } from './language/problems.ts'
export type { Problem } from './language/problems.ts'
export { StreamError } from './stream-error.ts'
export type { StreamErrorCode } from './stream-error.ts'
export { streamTools } from './run/toolchain.ts'
export type { Tools } from './run/toolchain.ts'
export { Board } from './board/board.ts'
export type { Snapshot } from './board/snapshot.ts'
export { findProgram, inspectProgram } from './run/elf.ts'
