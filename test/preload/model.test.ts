import { test } from 'node:test'
import { skip } from './harness.ts'
import { randomPlays } from './play.ts'

test('consumers see what the rules promise, whatever producers do', { skip, timeout: 240_000 }, () =>
  randomPlays(Number(process.env['MILLRACE_MODEL_RUNS'] ?? 40)),
)
