import { runExample, secondsOf } from './eager/example.ts'
import { bench } from './harness.ts'

const SETTINGS = { READS_MB: '12', READS_MEMORY: '1.5' }
const STREAMED = 'millrace, streamed'
const PARTS = 'out of core, part by part'
const OUT_OF_CORE = { ...SETTINGS, READS_OUT_OF_CORE: '1' }
const peak = (env: Readonly<Record<string, string>>) => async (): Promise<number> =>
  (await runExample<{ peakMB: number }>('reads/reads.ts', env)).peakMB
const about = `alignment of a FASTQ file of ${SETTINGS.READS_MB} MB with ${SETTINGS.READS_MEMORY} MB for reads, 2 CPUs`

await bench('eager-reads', [
  {
    name: 'reads',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 3,
    about,
    arms: [
      { system: STREAMED, run: secondsOf('reads/reads.ts', SETTINGS) },
      { system: PARTS, run: secondsOf('reads/reads.ts', OUT_OF_CORE) },
    ],
    goals: [{ of: STREAMED, against: PARTS, atMost: 0.98 }],
  },
  {
    name: 'reads-memory',
    unit: 'MB',
    better: 'lower',
    take: 'median',
    rounds: 1,
    about: 'the same: memory of the process beyond what it had before the first read',
    arms: [
      { system: STREAMED, run: peak(SETTINGS) },
      { system: PARTS, run: peak(OUT_OF_CORE) },
    ],
  },
])
