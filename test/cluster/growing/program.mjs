// Commands that read files while others write them. Agents have folders of their own, so that nothing but the streams joins them.
// What proves that two run at one time lies in a folder that all processes of this machine see.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { command, main, stream, waitOnFile, barrier, task, FILE_IN, FILE_OUT, IN } = await import(
  pathToFileURL(process.env.MILLRACE_INDEX).href
)

const [mode = 'pair', marks = '/tmp'] = process.argv.slice(2)
const growing = { commit: 'on_close', fire: 'no_update' }
const until = name => `while [ ! -e '${marks}/${name}' ]; do sleep 0.01; done`
const mark = name => `: > '${marks}/${name}'`

/** Its script finds its output as $0, and says on which node it ran. */
export const begin = command({ name: 'begin', params: [FILE_OUT, IN] }, (to, script) => [
  'sh',
  '-c',
  `pwd >> '${marks}/places'; ${script}`,
  to,
])
export const again = command(
  { name: 'again', params: [FILE_OUT, IN], onFailure: 'retry', retries: 1 },
  (to, script) => ['sh', '-c', `pwd >> '${marks}/places'; ${script}`, to],
)
export const step = command({ name: 'step', params: [FILE_IN, FILE_OUT, IN] }, (from, to, script) => [
  'sh',
  '-c',
  `pwd >> '${marks}/places'; ${script}`,
  from,
  to,
])
export const byStandardInput = command(
  { name: 'byStandardInput', params: [FILE_IN, FILE_OUT, IN], stdin: 0, stdout: 1 },
  (_from, _to, script) => ['sh', '-c', script],
)
export const length = task({ name: 'length', params: [FILE_IN] }, path => readFileSync(path).length)

/** Ends the process of the node that this program is on. */
const killAgent =
  'p=$PPID; until tr "\\0" " " < /proc/$p/cmdline | grep -q "[.]js agent"; do p=$(awk \'/^PPid/ { print $2 }\' /proc/$p/status); done; kill -KILL $p; sleep 60'

const text = async path => readFileSync(await waitOnFile(path), 'utf8')
const places = () => new Set(readFileSync(join(marks, 'places'), 'utf8').trim().split('\n')).size

const modes = {
  /** The writer goes on when its reader has got what was written so far. */
  async pair() {
    begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen')}; echo 2`)
    step('a', 'b', `{ read n; ${mark('seen')}; echo got $n; cat; } < "$0" > "$1"`)
    return [await text('b'), await text('a'), places(), await length('a')]
  },
  async chain() {
    begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen')}; echo 2`)
    step('a', stream('b', growing), 'while read n; do echo $((n * 10)); done < "$0" > "$1"')
    step('b', 'c', `while read n; do echo $((n + 1)); ${mark('seen')}; done < "$0" > "$1"`)
    return [await text('c'), await text('b'), await text('a'), places()]
  },
  async readers() {
    begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen1')}; ${until('seen2')}; echo 2`)
    for (const n of [1, 2]) step('a', `b${n}`, `{ read n; ${mark(`seen${n}`)}; cat; } < "$0" > "$1"`)
    return [await text('b1'), await text('b2'), places()]
  },
  /** Its reader is called when much was written. */
  async late() {
    begin(stream('a', growing), `exec > "$0"; seq 1 200000; ${mark('begun')}; ${until('seen')}; echo end`)
    while (!existsSync(join(marks, 'begun'))) await new Promise(resolve => setTimeout(resolve, 5))
    step('a', 'b', `{ read n; ${mark('seen')}; cat; } < "$0" | tail -n 2 > "$1"`)
    return [await text('b'), places()]
  },
  async standard() {
    begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen')}; echo 2`)
    byStandardInput('a', 'b', `read n; ${mark('seen')}; cat`)
    return [await text('b')]
  },
  async fails() {
    const first = begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen')}; exit 3`)
    const second = step('a', 'b', `{ read n; ${mark('seen')}; cat; } < "$0" > "$1"`)
    const ends = await Promise.allSettled([first, second])
    return [...ends.map(({ reason }) => reason?.name), existsSync('a'), existsSync('b')]
  },
  /** The first attempt of the writer fails in the middle. */
  async retries() {
    const once = `if [ ! -e '${marks}/once' ]; then ${mark('once')}; echo wrong; ${until('seen')}; exit 3; fi`
    again(stream('a', growing), `exec > "$0"; ${once}; echo right`)
    step('a', 'b', `{ read n; ${mark('seen')}; echo $n; cat; } < "$0" > "$1"`)
    return [await text('b'), await text('a')]
  },
  /** The agent of the writer is killed in the middle, once. */
  async writerDies() {
    const once = `if [ ! -e '${marks}/once' ]; then ${mark('once')}; echo wrong; ${until('seen')}; ${killAgent}; fi`
    begin(stream('a', growing), `exec > "$0"; ${once}; echo right`)
    step('a', 'b', `{ read n; ${mark('seen')}; echo $n; cat; } < "$0" > "$1"`)
    return [await text('b'), await text('a')]
  },
  /** That of the reader is. */
  async readerDies() {
    begin(stream('a', growing), `exec > "$0"; echo 1; ${until('seen')}; seq 2 1000`)
    const once = `if [ ! -e '${marks}/once' ]; then ${mark('once')}; ${mark('seen')}; ${killAgent}; fi`
    step('a', 'b', `{ read n; ${once}; echo $n; cat; } < "$0" > "$1"`)
    return [(await text('b')).length, (await text('a')).length]
  },
  async large() {
    begin(stream('a', growing), 'seq 1 3000000 > "$0"')
    step('a', 'b', 'md5sum < "$0" > "$1"')
    return [await text('b'), places()]
  },
  async many() {
    mkdirSync('out')
    for (let i = 0; i < 12; i++) {
      begin(
        stream(`f${i}`, { ...growing, commit: i % 2 ? 'on_close' : 'on_termination' }),
        `seq ${i} 1000 > "$0"`,
      )
      step(`f${i}`, `out/${i}`, 'wc -l < "$0" > "$1"')
    }
    await barrier()
    return Array.from({ length: 12 }, (_, i) => Number(readFileSync(`out/${i}`, 'utf8')))
  },
  async missing() {
    const first = begin(stream('a', growing), 'true')
    const second = step('a', 'b', 'cat "$0" > "$1"')
    const ends = await Promise.allSettled([first, second])
    return ends.map(({ reason }) => `${reason?.name}: ${reason?.message}`)
  },
}
main(async () => console.log(JSON.stringify(await modes[mode]())))
