import { isError, textFieldOf } from './thrown.ts'

/** Number of stack frames shown. */
export const STACK_FRAMES = 4
/** Files that parts of our build share, wherever it is installed. */
const CHUNK = /\/dist\/millrace-[\w-]+\.js:\d+:\d+\)?$/
/** Undefined in a CommonJS bundle, which another module refuses. */
const OWN = import.meta.url || 'file:///'
/** Where this copy of Millrace lies. */
const HERE = new URL('.', OWN).href
/** Where source maps say that it lies, with `node --enable-source-maps`. */
const SOURCES = decodeURI(new URL('../src/', OWN).pathname)

const NO_PLACE = /Promise\.\w+ \(index \d+\)$/

/** Users can do nothing about frames of Node and of Millrace. */
export const isForeignFrame = (line: string): boolean =>
  line.includes('node:') ||
  line.includes(HERE) ||
  line.includes(SOURCES) ||
  CHUNK.test(line) ||
  NO_PLACE.test(line)

/** Places in the user's own code, as the stack of an error has them. */
export const placesOf = (error: unknown): string[] =>
  (isError(error) ? (textFieldOf(error, 'stack') ?? '') : '')
    .split('\n')
    .filter(line => /^\s+at /.test(line) && !isForeignFrame(line))
    .slice(0, STACK_FRAMES)
