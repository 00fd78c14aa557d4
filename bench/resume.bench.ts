import { bench } from './harness.ts'
import { finished } from './resume/finished.ts'
import { keeping } from './resume/keeping.ts'
import { storeSize } from './resume/store-size.ts'

await bench('resume', [...keeping(), ...finished(), ...storeSize()])
