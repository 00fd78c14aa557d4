import type { Fields } from './fields.ts'
import { COMMIT_WORDS, type Written } from './language.ts'
import { nearest } from '../../general/nearest.ts'
import type { Problems } from './problems.ts'

/** A commit rule before the names it depends on are resolved. */
export type WrittenCommit =
  | { on: 'termination'; count: number | undefined }
  | { on: 'close'; count: number | undefined }
  | { on: 'file'; deps: Written[] }
  | { on: 'n_files'; count: number }

export interface RuleCommits {
  commit: WrittenCommit
  filesCommit: WrittenCommit | undefined
}

/** The commit rule of one streaming entry; undefined when it is wrong, which is then reported. */
export function readCommit(rule: Fields, directory: boolean, problems: Problems): RuleCommits | undefined {
  const nKey = rule.either(['n_files', 'nfiles'])
  const nFiles = nKey === undefined ? undefined : rule.count(nKey)
  const nWrong = nKey !== undefined && nFiles === undefined
  if (nKey !== undefined && !directory) {
    const fix = 'write "dirname" in place of "name", or remove it'
    problems.error(rule.keyAt(nKey), rule.path(nKey), `'${nKey}' is for directories`, fix)
    return undefined
  }
  const written = rule.string('committed', '"on_close"')
  if (rule.has('committed') && written === undefined) return undefined
  const commit =
    written === undefined ? onTermination : readWord(rule, written, directory, nFiles, nWrong, problems)
  if (commit === undefined || nWrong) return undefined
  if (commit.on !== 'file' && rule.has('file_deps')) {
    const message = '\'file_deps\' has a meaning only with "committed": "on_file"'
    problems.error(
      rule.keyAt('file_deps'),
      rule.path('file_deps'),
      message,
      'write on_file, or remove file_deps',
    )
    return undefined
  }
  if (commit.on === 'n_files') return { commit, filesCommit: { on: 'close', count: undefined } }
  // The paper gives a directory its number of files and, beside it, the commit rule of those files.
  if (nFiles !== undefined) return { commit: { on: 'n_files', count: nFiles }, filesCommit: commit }
  // A directory is not closed for writing: on_close is about its files, the directory ends with its writers.
  if (directory && commit.on === 'close') return { commit: onTermination, filesCommit: commit }
  return { commit, filesCommit: undefined }
}

const onTermination: WrittenCommit = { on: 'termination', count: undefined }

function readWord(
  rule: Fields,
  written: Written,
  directory: boolean,
  nFiles: number | undefined,
  nWrong: boolean,
  problems: Problems,
): WrittenCommit | undefined {
  const { text, at, field } = written
  const colon = text.indexOf(':')
  const word = colon < 0 ? text : text.slice(0, colon)
  const number = colon < 0 ? undefined : text.slice(colon + 1)
  const fail = (message: string, fix: string): undefined =>
    problems.error(at, field, message, fix) as undefined
  if (word === 'on_termination' || word === 'on_close') {
    if (number !== undefined && !/^[1-9]\d{0,8}$/.test(number)) {
      const never = number === '0' ? ': it would be complete before it was written' : ''
      return fail(
        `'${text}' has no usable count${never}`,
        `write '${word}' or '${word}:N' with N of 1 or more`,
      )
    }
    const count = number === undefined ? undefined : Number(number)
    return { on: word === 'on_close' ? 'close' : 'termination', count }
  }
  if (word === 'on_file') {
    if (number !== undefined) return fail('on_file takes no count', 'name the files in "file_deps": [ … ]')
    const deps = rule.strings('file_deps')
    if (deps.length > 0) return { on: 'file', deps }
    const node = rule.node('file_deps')
    if (node !== undefined && !(node.kind === 'array' && node.items.length === 0)) return undefined
    return fail('on_file does not say with which files', 'add "file_deps": ["file", …]')
  }
  if (word === 'on_n_files') {
    if (!directory)
      return fail('on_n_files is for directories', 'write "dirname" in place of "name", or on_close')
    if (number !== undefined)
      return fail('on_n_files takes no count here', `write "on_n_files" and "n_files": ${number || 'N'}`)
    if (nFiles !== undefined) return { on: 'n_files', count: nFiles }
    return nWrong ? undefined : fail('on_n_files does not say how many', 'add "n_files": N')
  }
  const near = nearest(word.replace(/[-\s]/g, '_'), COMMIT_WORDS)
  if (near !== null) {
    return fail(
      `'${text}' is no commit rule`,
      `did you mean '${near}${number === undefined ? '' : `:${number}`}'?`,
    )
  }
  if (/^on[_-]/.test(word))
    return fail(`'${text}' is no commit rule`, `write one of ${COMMIT_WORDS.join(', ')}`)
  if (rule.has('file_deps')) {
    return fail(`'${text}' is no commit rule, but there is 'file_deps'`, 'write "committed": "on_file"')
  }
  // The older spelling: the name of the file with which this one is committed.
  return { on: 'file', deps: [written] }
}
