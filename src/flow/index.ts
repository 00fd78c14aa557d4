/**
 * Workflow files: rules over files, run by `millrace make`.
 *
 *     import { rule, sh, target } from 'millrace/flow'
 *
 *     rule('out/{name}.txt', ['in/{name}.txt'], ({ out, in: [text] }) => sh`sort ${text} > ${out}`)
 *     target('all', ['out/a.txt', 'out/b.txt'])
 */
export { rule, target } from './language.ts'
export { sh, ShellCommand } from './sh.ts'
export type { Argv, Word } from './sh.ts'
export { dir, keep, optional, protect, stream, temp, Marked } from './marks.ts'
// Reserved in modules, but not behind a dot: flow.protected('x').
export { protect as protected } from './marks.ts'
export type { FileSpec, Marks } from './marks.ts'
export { param } from './params.ts'
export { glob, wildcards } from './glob.ts'
export { expand } from './expand.ts'
export type {
  Action,
  InputSpec,
  Parameters,
  RuleContext,
  RuleCost,
  RuleOptions,
  TargetBody,
  TargetContext,
} from './types.ts'
export type { FileShape } from './shape.ts'
