import { bench } from './harness.ts'
import { chain } from './tasks/chain.ts'
import { flat } from './tasks/flat.ts'
import { grain } from './tasks/grain.ts'
import { growing } from './tasks/growing.ts'
import { handOver } from './tasks/hand-over.ts'
import { matrix } from './tasks/matrix.ts'
import { pending } from './tasks/pending.ts'
import { startUp } from './tasks/start-up.ts'
import { stepTimes } from './tasks/step-times.ts'

await bench('tasks', [
  ...flat(),
  ...chain(),
  ...pending(),
  ...handOver(),
  ...growing(),
  ...startUp(),
  ...grain(),
  ...matrix(),
  ...stepTimes(),
])
