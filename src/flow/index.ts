/**
 * Workflow files: rules over files, run by `millrace make`.
 *
 *     import { rule, sh, target } from 'millrace/flow'
 *
 *     rule('out/{name}.txt', ['in/{name}.txt'], ({ out, in: [text] }) => sh`sort ${text} > ${out}`)
 *     target('all', ['out/a.txt', 'out/b.txt'])
 */
export { rule, target } from './language/rule.ts'
export { sh, ShellCommand } from './shell/sh.ts'
export type { Argv, Word } from './shell/sh.ts'
export { dir, keep, optional, protect, stream, temp, Marked } from './language/marks.ts'
// Reserved in modules, but not behind a dot: flow.protected('x').
export { protect as protected } from './language/marks.ts'
export type { FileSpec, Marks } from './language/marks.ts'
export { param } from './language/params.ts'
export { settings, table } from './language/data-files.ts'
export { constrain } from './language/constraints.ts'
export { glob, wildcards } from './language/glob.ts'
export { expand } from './language/expand.ts'
export { auto } from '../model/options/bandwidth.ts'
export type { AutoBandwidth, BandwidthValue } from '../model/options/bandwidth.ts'
export type {
  Action,
  InputSpec,
  Parameters,
  RuleContext,
  RuleCost,
  RuleOptions,
  TargetBody,
  TargetContext,
} from './language/types.ts'
export type { FileShape } from './language/shape.ts'
