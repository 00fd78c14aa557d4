/** The run of the pictures: fields of the sky are exposed, measured and moved to a slow device, while a log is read as it grows. */
import { FILE_IN, FILE_OUT, IN, command, main, stream } from 'millrace'

const FIELDS = Number(process.argv[2] ?? 60)

const sh = (text: string, ...words: string[]): string[] => ['sh', '-c', text, 'sh', ...words]

const expose = command(
  { name: 'expose', io: true, bandwidth: 20, size: '4MB', params: [IN, FILE_OUT] },
  (field: number, to: string) =>
    sh(
      'head -c 2000000 /dev/urandom > "$1"; sleep 0.2; head -c 2000000 /dev/urandom >> "$1"',
      to,
      `${field}`,
    ),
)
const archive = command(
  {
    name: 'archive',
    io: true,
    bandwidth: 'auto',
    size: '2MB',
    ...(process.argv[3] === 'cluster' ? {} : { storage: 'disk' }),
    params: [FILE_IN, FILE_OUT],
  },
  (from: string, to: string) => sh('sleep 0.05; head -c 2000000 "$1" > "$2"', from, to),
)
const project = command(
  { name: 'project', temporary: true, params: [FILE_IN, FILE_OUT] },
  (from: string, to: string) => sh('sleep 0.1; head -c 1000000 "$1" > "$2"', from, to),
)
const measure = command({ name: 'measure', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) =>
  sh('sleep 0.15; cksum < "$1" > "$2"', from, to),
)
const calibrate = command(
  { name: 'calibrate', onFailure: 'cancelSuccessors', params: [FILE_IN, FILE_OUT] },
  (from: string) => sh('echo "reading $1"; echo "no star here is brighter than 14 mag" >&2; exit 3', from),
)
const observe = command({ name: 'observe', params: [FILE_OUT] }, (to: unknown) =>
  sh('for i in $(seq $2); do head -c 40000 /dev/zero; sleep 0.1; done > "$1"', to as string, `${FIELDS * 4}`),
)
const watch = command({ name: 'watch', params: [FILE_IN, FILE_OUT] }, (from: string, to: string) =>
  sh('wc -c < "$1" > "$2"', from, to),
)

main(() => {
  observe(stream('night.log', { commit: 'on_close', fire: 'no_update' }))
  watch('night.log', 'night.txt')
  for (let field = 1; field <= FIELDS; field++) {
    expose(field, `fields/${field}.raw`)
    project(`fields/${field}.raw`, `fields/${field}.fits`)
    archive(`fields/${field}.raw`, `fields/${field}.half`)
    measure(`fields/${field}.fits`, `fields/${field}.sum`)
    if (field === 4) calibrate(`fields/${field}.raw`, `fields/${field}.cal`)
  }
})
