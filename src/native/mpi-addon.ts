import { join } from 'node:path'
import { buildPart, sourcesOf } from './build.ts'

const FILE = 'millrace-mpi.node'

/** The add-on for the MPI of this compiler, built if it is not there. */
export const mpiAddon = async (compiler: string): Promise<string> =>
  join(await buildPart({ name: 'mpi', sources: sourcesOf('native/mpi'), makes: [FILE], compiler }), FILE)
