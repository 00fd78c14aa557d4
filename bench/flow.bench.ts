import { bench } from './harness.ts'
import { nothingToDo } from './flow/nothing-to-do.ts'

await bench('flow', nothingToDo())
