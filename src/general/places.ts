/** So many frames of a stack are shown. */
export const STACK_FRAMES = 4
/** Chunks of our build, wherever it is installed; those of the user's bundler have no name before the hash. */
const CHUNK = /\/dist\/chunk-[\w-]+-[A-Z\d]{8}\.js:\d+:\d+\)?$/
/** Where this copy of us lies. */
const HERE = new URL('.', import.meta.url).href

const NO_PLACE = /Promise\.\w+ \(index \d+\)$/

/** Frames of Node help nobody, and ours only whoever looks for a mistake of ours. */
export const isForeignFrame = (line: string): boolean =>
  line.includes('node:') || line.includes(HERE) || CHUNK.test(line) || NO_PLACE.test(line)

/** Places in the user's own code, as the stack of an error has them. */
export const placesOf = (error: unknown): string[] =>
  (error instanceof Error ? (error.stack ?? '') : '')
    .split('\n')
    .filter(line => /^\s+at /.test(line) && !isForeignFrame(line))
    .slice(0, STACK_FRAMES)
