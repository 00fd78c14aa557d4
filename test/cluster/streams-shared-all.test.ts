// What holds for streams on one machine holds on nodes that share the managed directory.
process.env['STREAM_APART'] = '2'
process.env['STREAM_SHARED'] = 'written'
await import('../stream/truth.test.ts')
await import('../stream/rules.test.ts')
