/** The last version of Node that was tried and whose V8 knows the flag. */
const LAST_WITH_BUDGET = 20

/**
 * V8 optimizes a function after a few milliseconds in it, on threads of its own. In a run of commands that is too early:
 * the CPUs are busy with programs, and a coordinator that handles a thousand of them in a second is not what they wait
 * for. Ten times as late, runs of some thousand commands do without, and those of a million do not notice.
 */
export function delayOptimization(): void {
  // A private name of V8, which writes a complaint where it does not know it.
  if (Number.parseInt(process.versions.node) > LAST_WITH_BUDGET) return
  process.getBuiltinModule('node:v8').setFlagsFromString('--interrupt-budget=700000')
}
