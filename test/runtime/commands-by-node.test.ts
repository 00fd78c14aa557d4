/** The tests of commands once more, as they run where there is no C compiler. */
process.env['MILLRACE_SPAWNER'] = 'off'
await import('./commands.test.ts')
