import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Pages for those who change Millrace. */
const PAGES = ['docs/architecture.md', 'docs/internals.md', 'docs/states.md', 'CONTRIBUTING.md']
const FOLDERS = [
  'src',
  'dashboard',
  'native',
  'preload',
  'scripts',
  'bench',
  'test',
  'bin',
  'docs',
  'examples',
]
const SOURCES = /^(?:src|dashboard)\/.*\.tsx?$|^(?:native|preload)\/.*\.[ch]$|^scripts\/.*\.mjs$/
const CODE = /\.(?:ts|tsx|mjs|cjs|c|h|sh)$/

const files = FOLDERS.flatMap(folder =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(root.length)),
).filter(path => !path.startsWith('test/tmp/'))
const folders = new Set(files.map(dirname))
const sources = files
  .filter(path => SOURCES.test(path))
  .map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))

const isOneOf = (paths: Iterable<string>, end: string): boolean =>
  [...paths].some(path => path === end || path.endsWith(`/${end}`))

/** A file or folder, named by its last parts at least. */
const isPath = (path: string): boolean =>
  path.endsWith('/') ? isOneOf(folders, path.slice(0, -1)) : isOneOf(files, path)

const exporting = (name: string): string[] =>
  sources
    .filter(({ text }) =>
      new RegExp(
        `^export (?:abstract )?(?:class|interface|type|const|function\\*?|async function) ${name}\\b`,
        'm',
      ).test(text),
    )
    .map(({ text }) => text)

const isWord = (name: string): boolean => sources.some(({ text }) => new RegExp(`\\b${name}\\b`).test(text))

/** What is wrong with what a page calls by this name; null for what is no name of the code. */
function troubleWith(quoted: string): string | null {
  // What users write, and what programs that run print or make.
  if (/\bNAME\b|\.millrace|^out\/|^--/.test(quoted)) return null
  if (/^[\w./-]+$/.test(quoted) && (CODE.test(quoted) || quoted.endsWith('/')))
    return isPath(quoted) ? null : 'there is no such file or folder'
  const name = quoted.replace(/\(.*\)$/, '')
  const [, type = '', member] = /^([A-Z]+[a-z]\w*)(?:\.(\w+))?$/.exec(name) ?? []
  if (type !== '') {
    const found = exporting(type)
    if (found.length === 0) return 'nothing of this name is exported'
    const hasMember = member === undefined || found.some(text => new RegExp(`\\b${member}\\b`).test(text))
    return hasMember ? null : `${type} has no such member`
  }
  // One that is written in one word may be of the language or of the system.
  if (/^[a-z]+[A-Z]\w*$|^[A-Z]+_[A-Z_]+$/.test(name)) return isWord(name) ? null : 'it is not in the sources'
  return null
}

const namesOn = (page: string): string[] =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/`([^`\n]+)`/g)].map(([, quoted = '']) => quoted)

test('each file, folder, class and name of the code that pages for developers mention exists', () => {
  const wrong = PAGES.flatMap(page =>
    namesOn(page).flatMap(quoted => {
      const trouble = troubleWith(quoted)
      return trouble === null ? [] : [`${page}: ${quoted}: ${trouble}`]
    }),
  )
  assert.deepEqual(wrong, [])
})

test('the check of names finds what is not there', () => {
  for (const wrong of [
    'src/core/no-such.ts',
    'no-such.ts',
    'no-such-folder/',
    'NoSuchClass',
    'Engine.noSuchMember',
    'noSuchName',
    'NO_SUCH_CONSTANT',
  ])
    assert.notEqual(troubleWith(wrong), null, wrong)
  for (const right of [
    'src/core/engine.ts',
    'data/versions.ts',
    'schedule/',
    'Engine',
    'Engine.commit',
    'findNodes',
    'POLICY_NAMES',
    'commandOn(spec, words)',
    'npm test',
  ])
    assert.equal(troubleWith(right), null, right)
})
