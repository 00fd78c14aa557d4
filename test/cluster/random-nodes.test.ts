/**
 * The random programs of test/runtime, on two agents, against the same sequential run. MILLRACE_NODES, SEED and PROGRAMS
 * choose others.
 */
process.env['MILLRACE_NODES'] ??= 'local:2'
process.env['PROGRAMS'] ??= '40'
await import('../runtime/random-programs.test.ts')
