import { bench } from './harness.ts'
import { manyCases } from './stream/many-cases.ts'
import { oneToMany } from './stream/shapes.ts'

await bench('stream-1toN', manyCases('one producer, 4 consumers', oneToMany, 4))
