/**
 * V8 optimizes a function after a few milliseconds in it, on threads of its own. In a run of commands that is too early:
 * the CPUs are busy with programs, and a coordinator that handles a thousand of them in a second is not what they wait
 * for. Ten times as late, runs of some thousand commands do without, and those of a million do not notice.
 */
export function calmCompiler(): void {
  process.getBuiltinModule('node:v8').setFlagsFromString('--interrupt-budget=700000')
}
