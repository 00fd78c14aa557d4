/** The interposing library and the board tool, built at first use. */
import { join } from 'node:path'
import { BuildFailure, buildPart, builtPart, compiler, sourcesOf } from '../../native/build.ts'
import type { Part } from '../../native/build.ts'
import { findProgram } from './elf.ts'
import { StreamError } from '../stream-error.ts'

export { cacheFolder } from '../../native/build.ts'

export interface Tools {
  /** Path of `millrace-board`. */
  board: string
  /** Path of `libmillrace.so`. */
  library: string
}

const pending = new Map<string, Promise<Tools>>()

/** The tools of these sources, built if they are not. `say` hears when a build takes place. */
export async function streamTools(
  say: (text: string) => void = () => {},
  sources = sourcesOf('preload'),
): Promise<Tools> {
  if (process.platform !== 'linux') {
    throw new StreamError(
      'MR_STREAM_PLATFORM',
      `streaming works on Linux only, not on ${process.platform}`,
      'run the steps on Linux',
    )
  }
  const known = pending.get(sources)
  if (known !== undefined) return known
  const made = findOrBuild(sources, say)
  pending.set(sources, made)
  made.catch(() => pending.delete(sources))
  return made
}

/** Whether they are there, or something that could build them is. */
export function mayStream(sources = sourcesOf('preload')): boolean {
  if (process.platform !== 'linux') return false
  return (
    findProgram(compiler().split(' ')[0] as string, process.cwd()) !== undefined ||
    builtPart(partOf(sources)) !== null
  )
}

const partOf = (sources: string): Part => ({
  name: 'stream',
  sources,
  makes: ['millrace-board', 'libmillrace.so'],
})

async function findOrBuild(sources: string, say: (text: string) => void): Promise<Tools> {
  try {
    const folder = await buildPart({
      ...partOf(sources),
      say: where => say(`building the streaming library in ${where} …\n`),
    })
    return { board: join(folder, 'millrace-board'), library: join(folder, 'libmillrace.so') }
  } catch (error) {
    if (error instanceof BuildFailure) throw asStreamError(error, sources)
    throw error
  }
}

function asStreamError({ reason, message }: BuildFailure, sources: string): StreamError {
  switch (reason) {
    case 'sources':
      return new StreamError(
        'MR_STREAM_BUILD',
        `the sources of the library are not in ${sources}`,
        'install millrace again',
      )
    case 'compiler':
      return new StreamError(
        'MR_STREAM_BUILD',
        `there is no C compiler ('${compiler()}') to build the streaming library with`,
        'install one (Debian: apt install gcc libc6-dev) or set CC; nothing else of Millrace needs it',
      )
    case 'build':
      return new StreamError(
        'MR_STREAM_BUILD',
        `the streaming library could not be built:\n  ${message}`,
        'see the messages of the compiler above',
      )
    case 'cache':
      return new StreamError('MR_STREAM_BUILD', message, 'set XDG_CACHE_HOME to a folder that can be written')
    case 'nothing':
      return new StreamError('MR_STREAM_BUILD', message, 'please report this')
  }
}
