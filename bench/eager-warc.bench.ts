import { runExample, secondsOf } from './eager/example.ts'
import { bench } from './harness.ts'

const RECORDS = { WARC_RECORDS: '1200' }

/** Read at a rate at which reading takes as long as counting takes on this machine, as from I/O nodes. */
const counted = await runExample<{ megabytes: number; seconds: number }>('warc/warc.ts', {
  ...RECORDS,
  WARC_LAZY: '1',
})
const SETTINGS = { ...RECORDS, WARC_RATE: (counted.megabytes / counted.seconds).toFixed(1) }
const EAGER = 'millrace, records released as they are read'
const LAZY = 'all records at the end of the reader'

await bench('eager-warc', [
  {
    name: 'warc',
    unit: 's',
    better: 'lower',
    take: 'median',
    rounds: 5,
    about: `term frequencies of ${SETTINGS.WARC_RECORDS} records, read by an I/O task at ${SETTINGS.WARC_RATE} MB/s, 2 CPUs`,
    arms: [
      { system: EAGER, run: secondsOf('warc/warc.ts', SETTINGS) },
      { system: LAZY, run: secondsOf('warc/warc.ts', { ...SETTINGS, WARC_LAZY: '1' }) },
    ],
    goals: [{ of: EAGER, against: LAZY, atMost: 0.65 }],
  },
])
