// What holds for streams on one machine holds on nodes that share the managed directory, where bytes are seen after fsync.
process.env['STREAM_APART'] = '2'
process.env['STREAM_SHARED'] = 'synced'
await import('../stream/rules.test.ts')
