// `mpi-floor.mjs ADDON WHAT`: the messages of mpi.mjs, with an add-on that can do nothing else.
import { constants } from 'node:os'
import { timed } from './mpi-pieces.mjs'

const module = { exports: {} }
process.dlopen(module, process.argv[2], constants.dlopen.RTLD_NOW | constants.dlopen.RTLD_GLOBAL)
const { begin, send, recv, wtime, end } = module.exports
const what = process.argv[3]
const rank = begin(what === 'ping8' ? 8 : 1 << 20)
const took =
  rank === 0
    ? timed(what, wtime, () => {
        send()
        recv()
      })
    : timed(what, wtime, () => {
        recv()
        send()
      })
end()
if (rank === 0) console.log(String(took))
