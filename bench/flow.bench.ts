import { bench } from './harness.ts'
import { nothingToDo } from './flow/nothing-to-do.ts'
import { smallFiles } from './flow/small-files.ts'

await bench('flow', [...nothingToDo(), ...smallFiles()])
