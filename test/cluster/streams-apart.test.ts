// What holds for streams on one machine holds with each step on a node of its own.
process.env['STREAM_APART'] = '2'
await import('../stream/truth.test.ts')
await import('../stream/rules.test.ts')
