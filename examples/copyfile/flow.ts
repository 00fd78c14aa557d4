/**
 * Each file is copied twice: `millrace make -- files=20 megabytes=8`. A copy that is made right after the
 * one it copies finds it in the page cache; see `millrace show`, and try `--policy fifo` and `lifo`.
 */
import { expand, param, rule, sh, target } from 'millrace/flow'

const files = param('files', 20)
const megabytes = param('megabytes', 8)
/** 1: a copy is complete when it is on the device. */
const sync = param('sync', 0)
const numbers = Array.from({ length: files }, (_, i) => i)

/** Reads all of a file into memory, then writes it. */
const copyfile = (from: string, to: string) =>
  sh`dd if=${from} of=${to} bs=${megabytes}M count=1 iflag=fullblock status=none ${sync ? ['conv=fsync'] : []}`

rule(
  'work/in/{i}',
  [],
  { name: 'input' },
  ({ out }) => sh`dd if=/dev/urandom of=${out} bs=${megabytes}M count=1 iflag=fullblock status=none`,
)
rule('work/a/{i}', 'work/in/{i}', { name: 'A' }, ({ out, in: from }) => copyfile(from, out))
rule('work/b/{i}', 'work/a/{i}', { name: 'B' }, ({ out, in: from }) => copyfile(from, out))
rule(
  'work/sizes.txt',
  expand('work/b/{i}', { i: numbers }),
  { name: 'C' },
  ({ out, in: copies }) => sh`wc -c ${copies} > ${out}`,
)

target('copies', ['work/sizes.txt'])
target('inputs', expand('work/in/{i}', { i: numbers }))
