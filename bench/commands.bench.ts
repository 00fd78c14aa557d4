import { bench } from './harness.ts'
import { commands } from './commands/true.ts'

await bench('commands', commands())
