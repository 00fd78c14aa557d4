import { bench } from './harness.ts'
import { manyCases } from './stream/many-cases.ts'
import { manyToOne } from './stream/shapes.ts'

await bench('stream-Nto1', manyCases('5 producers, one consumer', manyToOne, 5))
