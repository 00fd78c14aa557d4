import { bench } from './harness.ts'
import { manyCases, partitionCases } from './stream/many-cases.ts'
import { oneToMany, partitions } from './stream/shapes.ts'

const sparse = partitions({ size: 400 * 2 ** 20, buffer: 2 ** 20, several: 4 })

await bench('stream-1toN', [
  ...manyCases('one producer, 4 consumers', oneToMany, 4),
  ...partitionCases(sparse, 'one sparse file of 400 MiB, 4 consumers read a part each'),
])
