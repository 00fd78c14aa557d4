import { messageOf, textFieldOf } from '../../general/thrown.ts'
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../../core/errors.ts'
import { codeOf, isOurs } from '../problem.ts'

const FRAMES = 6

/** Why a program could not be loaded, in words that lead out of it. */
export function loadFailure(program: string, error: unknown): unknown {
  if (isOurs(error)) return error
  const name = basename(program)
  const message = messageOf(error)
  const code = codeOf(error)
  if (code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND') {
    return notFound(program, name, message, error)
  }
  if (code === 'ERR_UNKNOWN_FILE_EXTENSION') {
    return failure(`${name} could not be loaded: ${message}`, error, 'Start the TypeScript file itself.')
  }
  const kind = error instanceof Error && !message.startsWith(error.name) ? `${error.name}: ` : ''
  const where = framesOf(error)
  return failure(
    [`${name} could not be loaded: ${kind}${message}`, ...where].join('\n'),
    error,
    'Tasks can run only when the program loads without an error.',
  )
}

function notFound(program: string, name: string, message: string, cause: unknown): MillraceError {
  const wanted = /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1]
  const importer = /imported from (\S.*?)(?:\n|$)/.exec(message)?.[1] ?? program
  if (wanted === 'millrace' || wanted?.startsWith('millrace/')) {
    return failure(
      `${name} cannot find the package millrace`,
      cause,
      `Run \`npm install millrace\` in ${packageFolder(program)}`,
    )
  }
  if (wanted === undefined) return failure(`${name} could not be loaded: ${message}`, cause)
  const isPath = /^[./]|^file:|^[a-z]:\\/i.test(wanted)
  const from = basename(importer.replace(/['"]/g, ''))
  return failure(
    `${from} imports ${isPath ? '' : 'the package '}${wanted}, which cannot be found`,
    cause,
    isPath ? 'Check the path.' : `Run \`npm install ${packageOf(wanted)}\` in ${packageFolder(program)}`,
  )
}

/** Where a package would be installed for the program. */
function packageFolder(program: string): string {
  for (let folder = dirname(program); ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) return dirname(program)
  }
}

/** Built into one folder or into several, our code is below the last `dist` of this path. */
const OWN = /^.*[\\/]dist[\\/]/.exec(fileURLToPath(import.meta.url))?.[0] ?? import.meta.url
const BIN = OWN.replace(/dist(.)$/, 'bin$1')
const LOADERS = /node:|[\\/]node_modules[\\/](?:tsx|esbuild)[\\/]/

/** Frames of the program, without those of Node, of the loader and of Millrace. */
function framesOf(error: unknown): string[] {
  const stack = textFieldOf(error, 'stack') ?? ''
  return stack
    .split('\n')
    .filter(line => /^\s+at /.test(line) && !LOADERS.test(line))
    .filter(line => !line.includes(OWN) && !line.includes(BIN))
    .slice(0, FRAMES)
}

const failure = (message: string, cause: unknown, hint?: string): MillraceError =>
  new MillraceError('MR_MODULE', message, { cause, ...(hint === undefined ? {} : { hint }) })

/** The package of what a program imports: the rest of the name is a file in it. */
const packageOf = (wanted: string): string =>
  wanted
    .split('/')
    .slice(0, wanted.startsWith('@') ? 2 : 1)
    .join('/')
